"""What is work and must stay: real sources and documents of this machine."""

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import open_engine

FOLDERS = (sysconfig.get_path("stdlib"), "/usr/share/doc", "/usr/include", "/usr/share/perl")
BUILT = (".pyc", ".so", ".a", ".o", ".gz", ".xz")
FILES_MAX = 10_000
WITHHELD_MAX_SHARE = 0.005

EXPLAINED = {
    "key-pem": "test keys, and documentation that prints a whole header",
    "token-jwt": "documentation that prints a signed token",
    "token-basic": "documentation that prints a header with a password",
    "token-aws-id": "documentation that prints an access key id",
    "token-aws-secret": "documentation that prints a secret key",
    "cookie-header": "a test of cookies with a value that looks drawn",
    "token-fireworks": "a hash that begins with the prefix behind a dash",
    "assigned": "a setting with a value that looks drawn",
    "key-base64": "a test key in base64",
    "token-url": "documentation that prints a password in a URL",
}


def real_files() -> Iterator[Path]:
    """Yield up to 10,000 sources and documents."""
    count = 0
    for folder in FOLDERS:
        for top, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name != "__pycache__")
            for name in sorted(files):
                path = Path(top, name)
                if path.suffix in BUILT or path.is_symlink() or not path.is_file():
                    continue
                yield path
                count += 1
                if count == FILES_MAX:
                    return


def test_real_sources_and_documents_stay() -> None:
    """A backup that withholds work is no backup; each hit must be one that can be explained."""
    policy = ContentPolicy(open_engine())
    withheld: list[tuple[Path, tuple[str, ...]]] = []
    count = 0

    for path in real_files():
        count += 1
        judged = policy.judge(bytes(path), path.read_bytes())
        if judged.decision is not Decision.INCLUDE:
            withheld.append((path, judged.rules))

    assert count > FILES_MAX // 4, "this machine has too few files to say anything"
    assert len(withheld) <= WITHHELD_MAX_SHARE * count, withheld
    assert not [one for one in withheld if not set(one[1]) <= set(EXPLAINED)], withheld
