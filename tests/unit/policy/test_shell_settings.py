"""Values taken out of files that a shell reads: the shell still reads what is left."""
# ruff: noqa: S311 - seeds of a test; the shell reads and runs nothing

import random
import subprocess

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.forms import Syntax, form_of
from durarepo.policy.rules import Decision
from durarepo.policy.scanner import HYPERSCAN, RE2, open_engine
from tests.policy.fresh import text

POLICIES = [ContentPolicy(open_engine(name)) for name in (RE2, HYPERSCAN)]
NAMES = ("API_SECRET", "DB_PASSWORD", "OPENAI_API_KEY", "PGPASSWORD", "X_ACCESS_TOKEN")
MARKER = "withheld.assigned"
SHELLS = (".bashrc", ".zshrc", ".profile", ".bash_profile", ".zshenv", ".bash_aliases", ".envrc")
LINES = (
    "export @N=@S\necho hi\n",
    "@N=@S ; export @N\n",
    "@N=@S; export @N # mine\n",
    'export @N="@S"; echo "and more"\n',
    "export @N='@S' OTHER='a b'\n",
    "@N=@S ./run.sh --fast && echo done\n",
    "(export @N=@S; ./run.sh)\n",
    'if [ "$@N" = @S ]; then echo yes; fi\n',
    "# export @N=@S\n",
    'alias x="curl --token @S https://h"\n',
    "x() { curl -H 'X-Api-Key: @S' https://h; }\n",
    "case $1 in a) @N=@S;; esac\n",
)
OTHERS = {
    ".config/fish/config.fish": "set -gx @N @S\nset x 1\n",
    ".cshrc": "setenv @N @S\n",
    "Dockerfile": "FROM x\nENV @N=@S A=1\nRUN make\n",
    "Dockerfile.dev": "ARG @N @S\n",
    "Makefile": "@N := @S\nall:\n\techo $(@N)\n",
    "rules.mk": "export @N ?= @S\n",
    "crontab": "@N=@S\n0 * * * * x\n",
    "prod.env": "@N=@S\nA=1\n",
}
SETTINGS = {
    ".config/systemd/user/a.service": "[Service]\nEnvironment=@N=@S\nExecStart=/x\n",
    "b.service": '[Service]\nEnvironment="A=1" "@N=@S"\nExecStart=/x --api-key none\n',
    "c.service": "[Service]\nExecStart=/usr/bin/x --api-key @S -v\n",
    "a.desktop": "[Desktop Entry]\nExec=env @N=@S x\n",
    "main.tf": 'provider "x" {\n  @N = "@S"\n}\n',
    "vault.hcl": 'token = "@S"\n',
    "Caddyfile": "token @S\n",
    ".config/foo/config": "@N=@S\n",
    ".config/foo/settings": "a: 1\n@N: @S\n",
    ".config/foo/foorc": "@N=@S\n",
    ".config/pythonrc": "@N=@S\n",
}


def redacted(path: str, body: str, draw: random.Random) -> tuple[str, str]:
    """Return what is left of a file, and what should be, with the marker of a shell."""
    secret, name = text(draw, draw.randint(20, 40)), draw.choice(NAMES)
    data = body.replace("@N", name).replace("@S", secret)
    judged = [one.judge(f"home/a/{path}".encode(), data.encode()) for one in POLICIES]

    assert judged[0] == judged[1]
    assert judged[0].decision is Decision.REDACT
    assert judged[0].data is not None
    assert POLICIES[0].judge(path.encode(), judged[0].data).decision is Decision.INCLUDE
    return judged[0].data.decode(), data.replace(secret, MARKER)


@pytest.mark.parametrize("line", LINES)
def test_a_shell_reads_what_is_left(line: str) -> None:
    """A profile that a shell cannot read after a restore lets nobody in (A2a)."""
    draw = random.Random(line)

    results = [redacted(SHELLS[number % len(SHELLS)], line, draw) for number in range(20)]

    assert all(after == expected for after, expected in results)
    last = results[-1][0].encode()
    assert subprocess.run(["bash", "-n"], input=last, check=False).returncode == 0


@pytest.mark.parametrize("path", OTHERS)
def test_only_the_word_goes_where_lines_are_handed_to_a_shell(path: str) -> None:
    """A value is a word; what follows it is a command, and work."""
    draw = random.Random(path)

    for _ in range(20):
        after, expected = redacted(path, OTHERS[path], draw)
        assert after == expected


@pytest.mark.parametrize("path", SETTINGS)
def test_settings_without_a_suffix_of_their_own_are_read(path: str) -> None:
    """Files of one program each are settings as well; kept unread, they keep their logins."""
    draw = random.Random(path)

    for _ in range(20):
        after, expected = redacted(path, SETTINGS[path], draw)
        assert after == expected.replace(MARKER, "withheld(assigned)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("password = @S ; why\n", "password = @M ; why\n"),
        ("password = @S # why\n", "password = @M # why\n"),
        ('password = "@S" ; "why"\n', 'password = "@M" ; "why"\n'),
        ("password: 'it''s@S' # 'why'\n", "password: '@M' # 'why'\n"),
    ],
)
def test_a_comment_behind_a_value_stays(before: str, after: str) -> None:
    """What somebody wrote beside a login is work."""
    secret = text(random.Random(before), 30)
    expected = after.replace("@M", "withheld(assigned)").encode()

    for path in (b"a.ini", b"a.yaml", b"a.conf"):
        judged = POLICIES[0].judge(path, before.replace("@S", secret).encode())
        assert judged.data == expected


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("Dockerfile", "FROM python:3.12\nENV GPG_KEY A035C8C19219BA821ECEA86B64E628F8D684696D\n"),
        ("Dockerfile", "ARG TOKEN\nENV API_KEY=${TOKEN}\nRUN --mount=type=secret,id=token make\n"),
        ("Makefile", "KEY_FILE := build/key-2024.pem\nTOKEN = $(shell cat .token-file-2024)\n"),
        (".bashrc", 'export API_SECRET=$(pass x/y-2024)\nexport API_KEY="${SOME_KEY_2024}"\n'),
        (".profile", "PASSWORD_STORE_DIR=~/.config/pass-2024-store\n"),
        ("main.tf", 'password = var.database_password_2024\nversion = "~> 5.31.0"\n'),
        (
            "a.service",
            "[Service]\nEnvironmentFile=/etc/secret-2024.env\nUMask=077\n",
        ),
        (".config/foo/config", "cache_key: 8f2a77c1d0e94b5aa1c3d5e7f9b1a2c4\n"),
    ],
)
def test_work_of_shells_without_a_secret_stays(path: str, data: str) -> None:
    """A reader that doubts every key and token loses the scripts that read them from elsewhere."""
    for policy in POLICIES:
        assert policy.judge(path.encode(), data.encode()).decision is Decision.INCLUDE


@pytest.mark.parametrize("body", ['export @N="@S\nab"\n', "@N='@S\nab'\n", "@N=@S\\\nab\n"])
def test_a_word_of_several_lines_takes_its_file(body: str) -> None:
    """Of a value that goes on in the next line, half would be kept."""
    secret = text(random.Random(body), 30)
    data = body.replace("@N", "DB_PASSWORD").replace("@S", secret)

    assert POLICIES[0].judge(b".bashrc", data.encode()).decision is Decision.EXCLUDE


@pytest.mark.parametrize("path", ["src", "bin/fish", "usr/bin/env", "a/config", "arc", "a.path"])
def test_a_name_that_says_nothing_of_a_form_has_none(path: str) -> None:
    """A program is no profile; nothing is taken out of it."""
    assert form_of(path.encode()).syntax is Syntax.OTHER
