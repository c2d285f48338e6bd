"""Print durarepo/local/cryptopin_wheels.py for a set of downloaded wheels of ``cryptography``.

    python -m pip download --no-deps --only-binary :all: --platform PLATFORM \
        --python-version 3.11 --abi abi3 --dest DIR cryptography==VERSION   (each platform)
    PYTHONPATH=. python .ci/pin_crypto.py DIR/*.whl > durarepo/local/cryptopin_wheels.py

A new pin is a change to review like any other: see spec/decisions/0001-dependencies.md.
"""

import hashlib
import sys
import zipfile
from pathlib import Path

from durarepo.local.cryptopin import NATIVE_FILE, sources_digest

HEADER = '''"""The published files of the one accepted version of ``cryptography``.

Data only; made by .ci/pin_crypto.py from the wheels named here. Source: the package index,
whose own hashes of the wheels stand in .ci/requirements.txt. Start at `NATIVE_SHA256`.
"""
'''


def pins_of(wheel: Path) -> tuple[str, str, str]:
    """Return version, digest of the native file and digest of the Python files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        prefix = "cryptography/"
        native = hashlib.sha256(archive.read(prefix + NATIVE_FILE)).hexdigest()
        sources = sources_digest(
            (name.removeprefix(prefix), archive.read(name))
            for name in archive.namelist()
            if name.startswith(prefix) and name.endswith(".py")
        )
    return wheel.name.split("-")[1], native, sources


def main(wheels: list[Path]) -> None:
    """Write the table to standard output; stop if the wheels are not of one version."""
    pins = {wheel.name: pins_of(wheel) for wheel in sorted(wheels)}
    [version] = {version for version, _, _ in pins.values()}
    [sources] = {sources for _, _, sources in pins.values()}
    lines = [HEADER, f'VERSION = "{version}"', "", f'SOURCES_SHA256 = "{sources}"']
    lines += ['"""All Python files of the package, the same in every wheel."""', ""]
    lines += ["NATIVE_SHA256 = {"]
    for name, (_, native, _) in pins.items():
        platform = name.rsplit("-", 1)[1].split(".", 1)[0]
        lines.append(f'    "{platform}": "{native}",')
    lines += ["}", '"""``_rust.abi3.so`` of each Linux wheel, by the wheel\'s platform."""']
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
