"""What a snapshot leaves out: by name, by content, and value by value (AICEP 10.5.2)."""

import os
import random
import sqlite3
import string
import time
import unicodedata
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from durarepo.core.entries import FileType
from durarepo.core.errors import ConfigurationError, SourceError
from durarepo.crypto.primitives import sha256
from durarepo.format.manifest import LedgerLine, OmissionClass
from durarepo.operations.allow import add_exclusion, allow
from durarepo.operations.checkout import CheckoutRequest, checkout
from durarepo.operations.dryrun import judge_roots
from durarepo.operations.snapshot import SnapshotResult
from durarepo.policy import scanner
from durarepo.policy.decide import ContentPolicy, Judged
from durarepo.policy.path_table import CACHEDIR_SIGNATURE
from durarepo.policy.rules import Decision, Stage
from durarepo.policy.scanning import Engine
from durarepo.repository import exclusion, largefiles, treekeeper
from durarepo.repository.repository import open_repository
from tests.machines.opens import opened_files
from tests.machines.plaintext import stored_plaintext, traces
from tests.machines.stream import Stream, fill, omissions

DRAW = random.Random(7)  # noqa: S311 - secrets of a test
MIB = 1 << 20


def drawn(size: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Return letters that look drawn."""
    return "".join(DRAW.choice(letters) for _ in range(size - 3)) + "a7Q"


def token() -> bytes:
    """Return a token of a known form."""
    return b"ghp_" + drawn(36).encode()


def header(label: str = "OPENSSH") -> bytes:
    """Return the opening line of a private key."""
    return b"-" * 5 + f"BEGIN {label} PRIVATE ".encode() + b"KEY" + b"-" * 5


def key(label: str = "OPENSSH") -> bytes:
    """Return a private key; its body is random."""
    body = "\n".join(drawn(64) for _ in range(5)).encode()
    return header(label) + b"\n" + body + b"\n" + header(label).replace(b"BEGIN", b"END") + b"\n"


def line(result: SnapshotResult, path: Path) -> LedgerLine:
    """Return the one line of a path."""
    (found,) = [one for one in result.left_out if one.path == bytes(path)]
    return found


def below(stream: Stream) -> dict[str, bytes]:
    """Return what an independent reader restores: files by their path below the root."""
    root = stream.restored_root()
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def assert_absent(stream: Stream, *secrets: bytes) -> None:
    """Fail if a secret occurs in what is stored, decrypted or not, or in state or catalogue."""
    plain = stored_plaintext(stream)
    raw = b"".join(
        path.read_bytes()
        for path in stream.base.rglob("*")
        if path.is_file()
        and not path.is_relative_to(stream.root)
        and not path.is_relative_to(stream.base / "home")
        and "restored" not in str(path)
    )
    for secret in secrets:
        for trace in traces(secret):
            assert trace not in plain
            assert trace not in raw


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a fresh stream with an empty root."""
    return Stream(tmp_path)


# --- by path ---


def test_what_a_path_rule_leaves_out_is_never_opened(stream: Stream) -> None:
    """A credential that is opened can be read, and 10.5.2 says before any data is read."""
    secret = drawn(30).encode()
    names = [
        ".env",
        ".ssh/id_rsa",
        ".aws/credentials",
        "app/node_modules/x/index.js",
        "p/.venv/bin/python",
        ".config/chromium/Default/Cookies",
        "a/.ENV.local",
        ".claude/.credentials.json",
        "b/" + unicodedata.normalize("NFKD", ".env"),
    ]
    fill(stream.root, {name: secret + name.encode() for name in names} | {"kept.txt": b"work"})

    with opened_files(bytes(stream.root)) as opens:
        result = stream.snapshot()

    assert set(opens) == {bytes(stream.root / "kept.txt")}
    assert (result.status, result.omissions) == ("ok", 0)
    assert result.excluded >= len(names) - 1
    assert {one.stage for one in result.left_out} == {"path"}
    assert below(stream) == {"kept.txt": b"work"}
    assert_absent(stream, secret)


def test_a_second_name_of_a_secret_file_is_left_out(stream: Stream) -> None:
    """A hard link to a store of logins under an innocent name would carry it out."""
    secret = drawn(24).encode()
    fill(stream.root, {".pgpass": b"h:1:d:u:" + secret, "notes/work.txt": b"work"})
    home = stream.base / "home"
    fill(home, {".netrc": b"machine h login u password " + secret})
    os.link(stream.root / ".pgpass", stream.root / "notes" / "harmless.txt")
    os.link(home / ".netrc", stream.root / "notes" / "data.bin")
    os.symlink(".pgpass", stream.root / "notes" / "link")

    result = stream.snapshot(home=bytes(home))

    assert set(below(stream)) == {"notes/work.txt"}
    assert line(result, stream.root / "notes" / "harmless.txt").rule == "store-login"
    assert line(result, stream.root / "notes" / "data.bin").rule == "store-login"
    assert_absent(stream, secret)


def test_a_name_that_holds_a_secret_is_told_by_a_short_id_alone(stream: Stream) -> None:
    """The ledger is read by people; a path with a token in it would show the token."""
    one, two = token(), token()
    fill(stream.root, {one.decode(): b"x", f"d/{two.decode()}.env": b"y", "kept": b"z"})
    os.mkfifo(stream.root / ("pipe-" + token().decode()))

    result = stream.snapshot()

    keyed = [each for each in result.left_out if each.is_keyed]
    assert len(keyed) == len(result.left_out) == 3
    assert all(one not in each.path and two not in each.path for each in keyed)
    assert set(below(stream)) == {"kept"}
    assert_absent(stream, one, two)
    told = stream.snapshot()
    assert {each.path for each in told.left_out} == {each.path for each in keyed}


def test_a_marked_folder_is_told_of_when_it_is_new_or_holds_work(stream: Stream) -> None:
    """An agent could drop a mark into its work, and nobody would miss the backup of it."""
    fill(
        stream.root,
        {
            "venv/pyvenv.cfg": b"home = /usr",
            "venv/lib/python3/site.py": b"pass",
            "work/pyvenv.cfg": b"",
            "work/chapter.md": b"# mine",
            "work/deep/model.py": b"x = 1",
        },
    )
    first = stream.snapshot()
    second = stream.snapshot()

    assert {(one.path, one.works, one.is_new) for one in first.marked} == {
        (bytes(stream.root / "venv"), 0, True),
        (bytes(stream.root / "work"), 2, True),
    }
    (still,) = second.marked
    assert (still.path, still.is_new, still.files) == (bytes(stream.root / "work"), False, 3)
    assert below(stream) == {}


def test_a_marked_folder_is_told_of_again_when_it_grows_by_new_names(stream: Stream) -> None:
    """One warning, and every later night of hidden work would pass in silence."""
    fill(stream.root, {"cache/CACHEDIR.TAG": CACHEDIR_SIGNATURE, "cache/tmp/0": b""})
    stream.snapshot()
    assert stream.snapshot().marked == ()
    fill(stream.root, {"cache/tmp/plan.txt": b"mine", "cache/doc/rows.csv": b"1,2"})

    grown = stream.snapshot()
    quiet = stream.snapshot()

    (told,) = grown.marked
    assert (told.works, told.grown, told.is_new) == (0, 2, False)
    assert quiet.marked == ()
    stream.lose(catalog=True)
    assert [one.is_new for one in stream.snapshot().marked] == [True]


def test_a_marked_folder_is_told_of_again_when_it_has_doubled(stream: Stream) -> None:
    """Names of hashes pass for a cache, so their number must not pass for ever."""
    fill(stream.root, {"cache/CACHEDIR.TAG": CACHEDIR_SIGNATURE})
    fill(stream.root, {f"cache/{sha256(b'0').hex()}.json": bytes(600_000)})
    stream.snapshot()
    fill(stream.root, {f"cache/{sha256(b'1').hex()}.json": bytes(500_000)})
    assert stream.snapshot().marked == ()
    fill(stream.root, {f"cache/{sha256(b'2').hex()}.json": bytes(500_000)})

    (told,) = stream.snapshot().marked

    assert (told.works, told.grown, told.is_new, told.is_doubled) == (0, 0, False, True)
    assert stream.snapshot().marked == ()


def test_the_operators_patterns_add_to_the_rules_and_take_nothing_back(stream: Stream) -> None:
    """An include that brought a credential back would let configuration waive a MUST."""
    fill(stream.root, {"a.tmp": b"1", ".env": b"2", "b": b"3"})
    with open_repository(stream.places) as repository:
        add_exclusion(repository, "*.tmp", root=None)
    text = Path(os.fsdecode(stream.places.configuration))
    text.write_text(text.read_text().replace("exclude =", 'include = [".env"]\nexclude ='))

    result = stream.snapshot()

    assert below(stream) == {"b": b"3"}
    assert {one.rule for one in result.left_out} == {"env-file", "operator"}


# --- by content ---


@pytest.mark.parametrize("before", [0, 10, 65_530, MIB - 9, 8 * MIB - 12, 9 * MIB])
def test_a_file_with_a_key_header_is_left_out_wherever_it_stands(
    stream: Stream, before: int
) -> None:
    """A header that straddles a read would come through, and the key with it."""
    secret = key()
    (stream.root / "notes.txt").write_bytes(b"w" * before + b"\n" + secret + b"tail\n")
    (stream.root / "kept.txt").write_bytes(b"BEGIN PRIVATE" + b" KEY in prose")

    result = stream.snapshot()

    assert set(below(stream)) == {"kept.txt"}
    found = line(result, stream.root / "notes.txt")
    assert (found.kind, found.rule, found.stage) == (OmissionClass.EXCLUSION, "key-pem", "content")
    assert result.status == "ok"
    assert result.new_bytes < MIB
    assert_absent(stream, secret, secret[40:120])


def test_values_are_taken_out_of_a_transcript_and_its_entry_is_marked(stream: Stream) -> None:
    """A conversation of a year must not be lost for one token, nor keep it."""
    one, two = token(), token()
    text = b'{"m": "use %s now"}\n{"m": "plain"}\n{"m": "or %s"}\n' % (one, two)
    fill(stream.root, {"t.jsonl": text, "big.jsonl": text + b'{"m": "plain line"}\n' * 90_000})

    result = stream.snapshot()

    files = below(stream)
    expected = text.replace(one, b"withheld(token-github)").replace(two, b"withheld(token-github)")
    assert files["t.jsonl"] == expected
    assert files["big.jsonl"].startswith(expected)
    assert result.redacted == 4
    entry = stream.entries()[bytes(stream.root / "t.jsonl")]
    assert entry.redactions == ("token-github",)
    assert entry.size == len(expected)
    assert_absent(stream, one, two)
    again = stream.snapshot()
    assert (again.redacted, again.new_chunks) == (4, 0)


def test_every_rule_by_which_values_went_is_named(stream: Stream) -> None:
    """Whoever sets up a restored agent anew must hear of each login, not of one a file."""
    other = b"glpat-" + drawn(20).encode()
    text = b'{"m": "%s or %s"}\n{"m": "%s"}\n' % (token(), token(), other)
    fill(stream.root, {"t.jsonl": text, "big.jsonl": text + b'{"m": "plain line"}\n' * 90_000})
    with open_repository(stream.places) as repository:
        dry = list(judge_roots(repository, home=None, clock=stream.clock))

    result = stream.snapshot()

    expected = {("token-github", 2), ("token-gitlab", 1)}
    for name in ("t.jsonl", "big.jsonl"):
        path = bytes(stream.root / name)
        lines = [one for one in result.left_out if one.path == path]
        assert {(one.rule, one.count) for one in lines} == expected
        (tested,) = [one for one in dry if one.path == path]
        assert tested.rules == ("token-github", "token-gitlab")
    with open_repository(stream.places) as repository:
        request = CheckoutRequest(destination=bytes(stream.base / "out"))
        done = checkout(repository, request, clock=stream.clock)
    assert len(done.reprovision) == 4
    assert done.not_restored["redacted"] == 2


def test_a_value_that_cannot_be_taken_out_leaves_the_file_out(stream: Stream) -> None:
    """In a program, nobody can say what else a value is part of."""
    secret = token()
    fill(stream.root, {"tool.bin": b"\0\1" + secret + b"\0", "main.c": b'char *t = "%s";' % secret})

    result = stream.snapshot()

    assert below(stream) == {}
    assert {one.rule for one in result.left_out} == {"token-github"}
    assert_absent(stream, secret)


def test_unchanged_files_are_not_read_again_left_out_or_not(stream: Stream) -> None:
    """A nightly run that scanned everything again would take hours."""
    fill(
        stream.root,
        {"d/key.txt": key(), "d/t.md": b"see " + token(), "d/plain": b"x", "e/other": b"y"},
    )
    stream.snapshot()
    first = stream.snapshot()
    fill(stream.root, {"d/new": b"new"})

    with opened_files(bytes(stream.root)) as opens:
        second = stream.snapshot()

    assert set(opens) == {bytes(stream.root / "d" / "new")}
    assert second.left_out == first.left_out
    assert (second.excluded, second.redacted) == (1, 1)


def test_other_rules_make_everything_be_read_again(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that is added today must find what was kept yesterday and did not change."""
    fill(stream.root, {"d/old.txt": b"marker-of-a-new-rule", "d/plain": b"x"})
    stream.snapshot()
    real = ContentPolicy.judge

    def judge(self: ContentPolicy, path: bytes, data: bytes) -> Judged:
        if b"marker-of-a-new-rule" in data:
            return Judged(decision=Decision.EXCLUDE, rule="new", stage=Stage.CONTENT)
        return real(self, path, data)

    monkeypatch.setattr(ContentPolicy, "judge", judge)
    believed = stream.snapshot()
    monkeypatch.setattr(exclusion, "policy_version", lambda: "2.next")
    result = stream.snapshot()

    assert believed.excluded == 0
    assert line(result, stream.root / "d" / "old.txt").rule == "new"
    assert set(below(stream)) == {"d/plain"}
    assert stream.nested().policy == "2.next"


def test_files_of_a_killed_run_are_believed_under_the_same_rules_only(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run must not carry over what other rules had let through."""
    fill(stream.root, {f"f{n:02}": b"work %d" % n for n in range(12)})
    opened: list[int] = []
    for version in ("a", "a", "b"):
        monkeypatch.setattr(exclusion, "policy_version", lambda version=version: version)
        stop = bytes(stream.root / f"f{3 + 3 * len(opened):02}")
        with monkeypatch.context() as patch, opened_files(bytes(stream.root)) as opens:
            _spend_budget_at(patch, stop)
            assert stream.snapshot(budget_seconds=1000).status == "budget"
        opened.append(len(set(opens)))

    assert opened == [3, 3, 9]


def _spend_budget_at(patch: pytest.MonkeyPatch, path: bytes) -> None:
    """Let the time be over when a file is about to be kept."""
    real = treekeeper.TreeKeeper._item_of

    def item_of(self: treekeeper.TreeKeeper, *given: object) -> object:
        event, _, listed = given[:3]
        if event.path + b"/" + listed[0] == path:  # type: ignore[attr-defined,index]  # its own
            patch.setattr(time, "monotonic", lambda: 1e9)
        return real(self, *given)  # type: ignore[arg-type]  # as given

    patch.setattr(treekeeper.TreeKeeper, "_item_of", item_of)


def test_a_hole_stays_a_hole_and_a_secret_behind_it_is_found(stream: Stream) -> None:
    """A sparse image must not grow to its full size, nor hide what lies in it."""
    for name, tail in (("kept.img", b"end"), ("out.img", key())):
        with open(stream.root / name, "wb") as file:
            file.write(b"start")
            file.seek(20 * MIB)
            file.write(tail)
    stream.snapshot()

    assert set(below(stream)) == {"kept.img"}
    entry = stream.entries()[bytes(stream.root / "kept.img")]
    assert entry.size == 20 * MIB + 3
    assert entry.content is not None
    assert any(run.chunk is None for run in entry.content.runs)


@pytest.mark.parametrize("limit", [3 * MIB, 64 * MIB])
@pytest.mark.parametrize("form", ["clean", "key", "token", "binary"])
def test_a_large_file_is_judged_alike_in_memory_and_in_two_reads(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, limit: int, form: str
) -> None:
    """What is too large for memory must not come through for that."""
    monkeypatch.setattr(largefiles, "MEMORY_MAX_BYTES", limit)
    secret = {"clean": b"", "key": key(), "token": token(), "binary": token()}[form]
    filling = b"a line of a log that says nothing at all\n" * 250_000
    at = 8 * MIB - 20
    at = filling.rindex(b"\n", 0, at) + 1
    name = "large.bin" if form == "binary" else "large.log"
    (stream.root / name).write_bytes(filling[:at] + secret + b"\n" + filling[at:])

    result = stream.snapshot()

    files = below(stream)
    if form in ("clean", "token"):
        kept = b"withheld(token-github)" if secret else b""
        assert files == {name: filling[:at] + kept + b"\n" + filling[at:]}
        assert result.redacted == bool(secret)
    else:
        assert files == {}
        assert (result.excluded, result.packs) == (1, 1)
    if secret:
        assert_absent(stream, secret)


def test_a_file_that_changes_between_scan_and_cut_is_not_stored(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was scanned and what is kept must be the same bytes, or a key slips in between."""
    monkeypatch.setattr(largefiles, "MEMORY_MAX_BYTES", MIB)
    path = stream.root / "large.bin"
    path.write_bytes(b"x" * 20 * MIB)
    secret = key()
    real = largefiles.LargeFiles._take_again

    def take_again(self: largefiles.LargeFiles, *given: object, **named: object) -> object:
        with open(path, "r+b") as file:
            file.seek(17 * MIB + DRAW.randrange(1000))
            file.write(secret)
        return real(self, *given, **named)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(largefiles.LargeFiles, "_take_again", take_again)
    result = stream.snapshot()

    assert below(stream) == {}
    assert line(result, path).rule in ("unstable", "key-pem")
    assert_absent(stream, secret, secret[40:100])


def test_a_file_that_never_rests_is_an_omission(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What should have been kept and could not be scanned safely has to be told."""
    monkeypatch.setattr(largefiles, "MEMORY_MAX_BYTES", MIB)
    (stream.root / "large.bin").write_bytes(b"x" * 3 * MIB)

    def never_same(*_: object) -> None:
        raise largefiles.UnstableError

    monkeypatch.setattr(largefiles, "same_as_scanned", never_same)
    result = stream.snapshot()

    assert [(one.path, one.rule) for one in omissions(result)] == [
        (bytes(stream.root / "large.bin"), "unstable")
    ]
    assert result.status == "omissions"


# --- links, attributes, databases ---


def test_a_link_whose_target_holds_a_secret_is_left_out(stream: Stream) -> None:
    """The text of a link is content like any other."""
    secret = token()
    os.symlink(b"/x/" + secret, stream.root / "link")
    os.symlink("plain", stream.root / "other")

    result = stream.snapshot()

    assert line(result, stream.root / "link").rule == "token-github"
    assert bytes(stream.root / "other") in stream.entries()
    assert_absent(stream, secret)


def test_an_attribute_that_holds_a_secret_is_left_out(stream: Stream) -> None:
    """An extended attribute is content that no listing shows."""
    secret = token()
    path = stream.root / "file"
    path.write_bytes(b"work")
    try:
        os.setxattr(path, "user.login", secret)
        os.setxattr(path, "user.note", b"harmless")
        os.setxattr(stream.root, "user.login", secret)
    except OSError:
        pytest.skip("no extended attributes here")

    result = stream.snapshot()

    entry = stream.entries()[bytes(path)]
    assert entry.xattrs == ((b"user.note", b"harmless"),)
    assert entry.redactions == ("token-github",)
    assert result.redacted == 2
    assert_absent(stream, secret)


def test_logins_are_taken_out_of_a_database_and_counted(stream: Stream) -> None:
    """Chats must come back without the keys beside them, deleted rows included."""
    keys = [b"sk-" + drawn(40).encode() for _ in range(3)]
    path = stream.root / "webui.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE chat (id TEXT, user_id TEXT, title TEXT, chat TEXT)")
        connection.execute("CREATE TABLE auth (id TEXT, email TEXT, password TEXT, active INT)")
        connection.executemany(
            "INSERT INTO auth VALUES (?, 'a@b', ?, 1)",
            [(str(n), "$2b$12$" + one.decode()) for n, one in enumerate(keys)],
        )
        connection.execute("INSERT INTO chat VALUES ('1', '1', 'hello', 'words')")
        connection.commit()

    result = stream.snapshot()

    root = stream.restored_root()
    with closing(sqlite3.connect(root / "webui.db")) as connection:
        assert connection.execute("SELECT count(*) FROM auth").fetchone() == (0,)
        assert connection.execute("SELECT title FROM chat").fetchall() == [("hello",)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = line(result, path)
    assert (found.kind, found.rule, found.count) == (
        OmissionClass.REDACTION,
        "sqlite-webui-password",
        3,
    )
    assert_absent(stream, *keys)
    assert_absent_in_work(stream)


def assert_absent_in_work(stream: Stream) -> None:
    """Fail if a database copy was left behind."""
    work = Path(os.fsdecode(stream.places.work))
    assert [path for path in work.rglob("*.*") if path.suffix in (".sqlite", ".compact")] == []


def test_an_unknown_database_with_a_hit_is_left_out_with_its_log(stream: Stream) -> None:
    """The log of a database holds what its tables hold."""
    secret = token().decode()
    path = stream.root / "agent.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (?)", (secret,))
    connection.commit()

    stream.snapshot()
    fill(stream.root, {"other": b"makes the folder be looked through again"})
    result = stream.snapshot()

    connection.close()
    assert set(below(stream)) == {"other"}
    assert line(result, path).rule == "token-github"
    assert line(result, Path(f"{path}-wal")).rule == "sqlite-sidecar"
    assert_absent(stream, secret.encode())


def test_what_only_free_pages_hold_is_left_behind_with_them(stream: Stream) -> None:
    """A deleted row must neither be kept nor cost the whole database."""
    secret = token().decode()
    path = stream.root / "agent.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA secure_delete=OFF")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(secret,), ("work " * 900,)] * 9)
        connection.execute("DELETE FROM t WHERE x = ?", (secret,))
        connection.commit()
    assert secret.encode() in path.read_bytes()

    result = stream.snapshot()

    with closing(sqlite3.connect(stream.restored_root() / "agent.db")) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (9,)
    assert line(result, path).kind is OmissionClass.REDACTION
    assert_absent(stream, secret.encode())


def test_a_damaged_database_is_scanned_as_bytes(stream: Stream) -> None:
    """Damage must not be a way past the rules."""
    secret = token()
    fill(
        stream.root,
        {
            "bad.db": b"SQLite format 3\0" + b"\1" * 5000 + secret + b"\0" * 900,
            "odd.db": b"SQLite format 3\0" + b"\2" * 5000,
        },
    )

    result = stream.snapshot()

    assert set(below(stream)) == {"odd.db"}
    assert line(result, stream.root / "bad.db").kind is OmissionClass.EXCLUSION
    assert line(result, stream.root / "odd.db").kind is OmissionClass.OMISSION
    assert_absent(stream, secret)


# --- reviewed entries, failures, dry run, checkout ---


def test_a_reviewed_header_is_kept_until_its_entry_ends_or_its_content_changes(
    stream: Stream,
) -> None:
    """Documentation that prints a header can be kept, and nothing else for it."""
    guide = stream.root / "guide.md"
    fill(
        stream.root,
        {
            "guide.md": b"A key begins with\n" + header() + b"\nand so on.\n",
            "copy.md": b"A key begins with\n" + header() + b"\nand so on.\n",
        },
    )
    assert stream.snapshot().excluded == 2
    with open_repository(stream.places) as repository:
        allow(repository, bytes(guide), reason="a guide", today=datetime.now(UTC).date())

    assert stream.snapshot().excluded == 1
    assert set(below(stream)) == {"guide.md"}
    assert stream.snapshot().excluded == 1
    now = stream.clock()
    stream.clock = lambda: now + 92 * 86_400
    assert stream.snapshot().excluded == 2
    stream.clock = lambda: now + 93 * 86_400
    guide.write_bytes(guide.read_bytes() + key())
    assert stream.snapshot().excluded == 2


def test_an_entry_that_ends_too_far_off_ends_the_run(stream: Stream) -> None:
    """An exception that nobody reviews again is no exception but a hole."""
    text = Path(os.fsdecode(stream.places.configuration))
    until = datetime.fromtimestamp(stream.clock(), UTC).date() + timedelta(days=99)
    text.write_text(
        text.read_text() + f'\n[[allow]]\npath = "/x"\ncontent = "00"\n'
        f'rule = "key-pem"\nreason = "r"\nuntil = "{until}"\n'
    )

    with pytest.raises(ConfigurationError) as caught:
        stream.snapshot()

    assert caught.value.code == "config.allow"
    assert stream.object_files()[1:] == [] or stream.statements() == {}


def test_without_a_scanner_there_is_no_manifest(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing may be kept unscanned."""
    fill(stream.root, {"a": b"work"})

    def missing(_: str) -> Engine:
        raise scanner._refused("there is none")

    monkeypatch.setattr(exclusion, "open_engine", missing)
    with pytest.raises(SourceError) as caught:
        stream.snapshot()

    assert caught.value.code == "source.scanner"
    assert stream.statements() == {}


def test_both_engines_keep_and_leave_out_the_same(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who installs the faster engine must not get another backup, nor a scan of everything."""
    fill(stream.root, {"k.txt": key(), "t.md": b"see " + token(), "plain": b"x"})
    told = []
    for engine in (scanner.RE2, scanner.HYPERSCAN):
        monkeypatch.setattr(exclusion, "open_engine", lambda _, e=engine: scanner.open_engine(e))
        stream.lose(catalog=True)
        result = stream.snapshot()
        told.append((result.left_out, stream.nested().policy))
    with opened_files(bytes(stream.root)) as opens:
        monkeypatch.setattr(exclusion, "open_engine", lambda _: scanner.open_engine(scanner.RE2))
        stream.snapshot()

    assert told[0] == told[1]
    assert opens == []


def test_a_dry_run_tells_what_the_run_does_and_changes_nothing(stream: Stream) -> None:
    """Who looks before the first snapshot must see what it will do."""
    fill(
        stream.root,
        {
            ".env": b"x",
            "k.txt": key(),
            "t.md": b"see " + token(),
            "d/plain": b"x",
            token().decode(): b"y",
        },
    )
    with suppress(OSError):  # not every disk has attributes
        os.setxattr(stream.root / "d", "user.login", token())
    before = stream.object_files()
    with open_repository(stream.places) as repository:
        told = list(judge_roots(repository, home=None, clock=stream.clock))
    assert stream.object_files() == before

    result = stream.snapshot()

    kept = {path for path, entry in stream.entries().items() if entry.type is FileType.FILE}
    redacted = {one.path for one in told if one.decision == "redact"}
    assert redacted == {one.path for one in result.left_out if one.kind is OmissionClass.REDACTION}
    assert {one.path for one in told if one.decision == "include"} == kept - redacted
    assert sum(one.decision == "exclude" for one in told) == result.excluded
    assert {(one.rule, str(one.stage)) for one in told if one.rule} == {
        (one.rule, one.stage) for one in result.left_out
    }


def test_a_checkout_says_what_has_to_be_set_up_anew(stream: Stream) -> None:
    """Whoever restores must know which logins are missing before something runs."""
    fill(stream.root, {".env": b"x", "t.md": b"see " + token(), "plain": b"x", "d/.cache/c": b"y"})
    stream.snapshot()
    with open_repository(stream.places) as repository:
        done = checkout(
            repository,
            CheckoutRequest(destination=bytes(stream.base / "out")),
            clock=stream.clock,
        )
        part = checkout(
            repository,
            CheckoutRequest(
                destination=bytes(stream.base / "part"), paths=(bytes(stream.root / "plain"),)
            ),
            clock=stream.clock,
        )

    assert [(one.path, one.rule) for one in done.reprovision] == [
        (bytes(stream.root / ".env"), "env-file"),
        (bytes(stream.root / "t.md"), "token-github"),
    ]
    assert (done.not_restored["excluded"], done.not_restored["redacted"]) == (1, 1)
    assert part.reprovision == ()
