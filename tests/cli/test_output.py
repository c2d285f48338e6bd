"""What may reach a terminal, and what a stream that is closed, full or left does to a run."""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from durarepo_cli.output import mtime_text, path_fields, printable, quoted, size_text, time_text
from tests.cli.harness import PROGRAM, TOP, Cli, Ran, checked

_HARMFUL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.binary(max_size=40))
def test_a_quoted_path_holds_nothing_that_steers_a_terminal(path: bytes) -> None:
    """A file name could else clear the screen, or hide what stands beside it."""
    text = quoted(path)

    assert not {unicodedata.category(one) for one in text} & _HARMFUL
    assert "\n" not in text
    assert text


@given(st.text(max_size=40))
def test_a_printable_text_holds_nothing_that_steers_a_terminal(text: str) -> None:
    """Messages hold names as well."""
    assert not {unicodedata.category(one) for one in printable(text)} & _HARMFUL


@given(st.lists(st.binary(min_size=1, max_size=12), min_size=2, max_size=2, unique=True))
@example([b"\x9b", "\x9b".encode()])
@example([b"\\xff", b"\xff"])
@example([b"a\n", b"a\\n"])
@example([b'"a"', b"a"])
def test_two_paths_are_never_quoted_alike(paths: list[bytes]) -> None:
    """Who reads a name must be able to tell which file it is."""
    assert quoted(paths[0]) != quoted(paths[1])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"/home/a/notes.txt", "/home/a/notes.txt"),
        ("/home/ä/ノート".encode(), "/home/ä/ノート"),
        (b"/a b", "/a b"),
        (b"", '""'),
        (b" a", '" a"'),
        (b"a\nb", '"a\\nb"'),
        (b'a"b\\c', '"a\\"b\\\\c"'),
        (b"\x1b[31m", '"\\x1b[31m"'),
        (b"\xff", '"\\xff"'),
        ("a\u202eb".encode(), '"a\\u202eb"'),
        ("a\u2028b".encode(), '"a\\u2028b"'),
        ("a\u200bb".encode(), '"a\\u200bb"'),
        (b"\x7f\x9b", '"\\x7f\\x9b"'),
        ("\x9b2J".encode(), '"\\u009b2J"'),
    ],
)
def test_a_path_is_quoted_only_where_it_has_to_be(path: bytes, text: str) -> None:
    """Plain names stay plain, so that they can be copied."""
    assert quoted(path) == text


def test_a_path_in_json_keeps_its_bytes() -> None:
    """A script must be able to name every file, also one whose name is not UTF-8."""
    assert path_fields("path", b"/a") == {"path": "/a"}
    assert path_fields("path", b"/\xff") == {"path": "/\ufffd", "path_b64": "L/8="}
    assert path_fields("path", None) == {"path": None}


def test_times_are_utc_with_z() -> None:
    """A time without a zone is a time of nowhere."""
    assert time_text(0) == "1970-01-01T00:00:00Z"
    assert time_text(None) is None
    assert time_text(1 << 62) is None
    assert time_text(-62_135_596_801) is None
    assert mtime_text(1) == "1970-01-01T00:00:00.000000001Z"
    assert mtime_text(-1) == "1969-12-31T23:59:59.999999999Z"
    assert size_text(0) == "0 B"
    assert size_text(1536) == "1.5 KiB"


# --- streams -------------------------------------------------------------------------------

_SABOTAGED = """
import os, signal, sys, threading
from durarepo_cli import codes
from durarepo_cli.main import main
class Pages(dict):
    def get(self, key, default=None):
        {act}
codes.PAGES = Pages()
sys.exit(main(["explain", "x", *sys.argv[1:]]))
"""


def _sabotaged(cli: Cli, act: str, *arguments: str) -> Ran:
    """Run ``explain`` with something else happening in its middle."""
    done = subprocess.run(
        [sys.executable, "-c", _SABOTAGED.format(act=act), *arguments],
        env=cli.environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in done.stderr + done.stdout
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "act",
    [
        "raise ValueError('s3cret')",
        "raise MemoryError('s3cret')",
        "raise OSError(28, 's3cret')",
        "raise RuntimeError('s3cret') from KeyError('s3cret')",
        "raise UnicodeDecodeError('utf-8', b's3cret', 0, 1, 's3cret')",
        "raise RecursionError('s3cret')",
        "raise SystemError('s3cret')",
        "assert not 's3cret', 's3cret'",
    ],
)
@pytest.mark.parametrize("options", [[], ["-v"], ["--json"], ["--json", "-v"]], ids="".join)
def test_a_bug_is_told_by_its_class_alone(cli: Cli, act: str, options: list[str]) -> None:
    """The message of an exception could hold a key or content (A2e)."""
    ran = _sabotaged(cli, act, *options)

    assert ran.code == 70
    assert b"s3cret" not in ran.stdout + ran.stderr
    assert b"bug.unexpected" in ran.stdout + ran.stderr
    assert (b"codes" in ran.stderr or b"<string>" in ran.stderr) == ("-v" in options)


@pytest.mark.parametrize(
    ("act", "code", "name"),
    [
        ("raise KeyboardInterrupt", 130, "run.interrupted"),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "run.interrupted"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, "run.terminated"),
        ("os.kill(os.getpid(), signal.SIGHUP)", 143, "run.terminated"),
    ],
)
def test_a_signal_ends_the_run_with_its_code(cli: Cli, act: str, code: int, name: str) -> None:
    """A timer and a launcher tell a stop from a failure by these."""
    ran = _sabotaged(cli, act)
    told = _sabotaged(cli, act, "--json")

    assert (ran.code, ran.stdout) == (code, b"")
    assert f"[{name}]" in ran.err
    assert (told.code, told.error()["code"], told.stderr) == (code, name, b"")


def test_a_second_signal_does_not_disturb_the_cleaning_up(cli: Cli) -> None:
    """An impatient second Ctrl-C must not leave more behind than the first."""
    act = (
        "try: os.kill(os.getpid(), signal.SIGTERM)\n"
        "        finally:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "            os.write(1, b'cleaned up')"
    )

    ran = _sabotaged(cli, act)

    assert (ran.code, ran.stdout) == (143, b"cleaned up")


def test_a_thread_that_fails_shows_no_traceback(cli: Cli) -> None:
    """Python prints message and all where a thread ends; that could hold a secret."""
    act = (
        "one = threading.Thread(target=lambda: int('s3cret'))\n"
        "        one.start(); one.join(); raise KeyboardInterrupt"
    )

    ran = _sabotaged(cli, act)

    assert b"s3cret" not in ran.stderr
    assert b"a thread ended with ValueError" in ran.stderr


def test_no_core_dump_and_private_files(cli: Cli) -> None:
    """Memory holds keys; a dump or a readable file would spread them."""
    act = (
        "import resource\n"
        "        print(resource.getrlimit(resource.RLIMIT_CORE), oct(os.umask(0)))\n"
        "        raise KeyboardInterrupt"
    )

    assert _sabotaged(cli, act).stdout == b"(0, 0) 0o77\n"


def test_a_full_stdout_ends_with_14(cli: Cli) -> None:
    """A result that nobody got must not look delivered."""
    for arguments in (["--version"], ["--help"], ["explain", "trust.rollback", "--json"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                cli.command(*arguments),
                env=cli.environment,
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )

        assert done.returncode == 14
        assert b"[store.output]" in done.stderr
        assert len(done.stderr.splitlines()) == 2


def test_a_full_stderr_changes_no_exit_code(cli: Cli) -> None:
    """The exit code is the last thing that is still heard."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            cli.command("nonsense"),
            env=cli.environment,
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )

    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_never_become_files_of_the_repository(fresh: Cli, closed: str) -> None:
    """The next file that is opened gets the free number; what is printed would land in it."""
    before = {path: path.read_bytes() for path in fresh.repository().rglob("*") if path.is_file()}
    line = " ".join(f"'{part!s}'" for part in [*PROGRAM, "status"])

    command = fresh.command()[: -len(PROGRAM)]
    done = subprocess.run(
        [*command, "sh", "-c", f"exec {line} {closed}"],
        env=fresh.environment,
        capture_output=True,
        check=False,
    )

    assert done.returncode == (14 if ">&-" in closed.replace("2>&-", "") else 0)
    checked(Ran(done.returncode, done.stdout, done.stderr))
    after = {path: path.read_bytes() for path in fresh.repository().rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path in before} == before


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_the_number_of_a_closed_stream_is_not_given_to_a_file(
    cli: Cli, tmp_path: Path, closed: str
) -> None:
    """The low numbers are written to by whoever has something to say."""
    act = "os._exit(os.open('/', os.O_RDONLY))"
    program = tmp_path / "program.py"
    program.write_text(_SABOTAGED.format(act=act))

    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$1" {closed}', sys.executable, str(program)],
        env=cli.environment,
        check=False,
    )

    assert 3 <= done.returncode < 20


def test_a_reader_that_leaves_ends_the_output_without_a_word(cli: Cli) -> None:
    """``durarepo log | head -1`` is no failure."""
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        cli.command("explain", "trust.rollback"),
        env=cli.environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_that_is_not_utf8_gets_escapes(cli: Cli) -> None:
    """A name must not end a run because a terminal lacks its letters."""
    folder = cli.home / "agent" / "ä"
    folder.mkdir()

    ran = cli.run("held", str(folder), PYTHONIOENCODING="ascii")

    assert ran.code == 0
    assert ran.stdout.endswith(b"agent/\\xe4\n")


def test_a_name_in_an_error_is_escaped_on_both_channels(cli: Cli) -> None:
    """An error is where a hostile name shows first."""
    name = b"\x1b]0;owned\x07\n\xe2\x80\xae\xff"

    text = cli.run("held", name)
    told = cli.run("held", name, "--json")

    assert text.code == told.code == 2
    assert len(text.err.splitlines()) == 2
    assert text.err.isascii()
    assert "\x1b" not in text.err
    assert told.stdout.isascii()
    json.loads(told.stdout)
    assert b"\x1b" not in told.stdout


def test_nothing_is_coloured(cli: Cli) -> None:
    """No colour carries meaning, so none is used; NO_COLOR is honoured by all runs alike."""
    ran = cli.run("--help", NO_COLOR="1")

    assert ran.stdout == cli.run("--help", FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert b"\x1b" not in ran.stdout


def test_help_has_one_width_everywhere() -> None:
    """Help stands in documents that are compared with it."""
    outputs = {
        subprocess.run(
            [*PROGRAM, "init", "--help"],
            env={"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "COLUMNS": columns, "HOME": "/nowhere"},
            capture_output=True,
            check=True,
        ).stdout
        for columns in ("20", "80", "200")
    }

    assert len(outputs) == 1
