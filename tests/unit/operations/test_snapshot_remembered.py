"""A database that changes: only what changed is scanned, and nothing gets by for that."""
# ruff: noqa: S311 - seeds of a test

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.limits import MIB
from durarepo.core.names import ChunkId
from durarepo.local.catalog import Catalog
from durarepo.policy.decide import Judged
from durarepo.policy.remembered import ScanMemory
from durarepo.policy.rules import Decision, Stage
from durarepo.policy.scanning import Scan
from durarepo.repository import contents, largefiles
from durarepo.repository.scanmemories import ScanMemories
from durarepo.source.sqliteclean import Cleaned, CleanedFile, clean_file
from durarepo.source.sqliteslack import clear_slack
from tests.machines.stream import Stream
from tests.policy.fresh import prose, text

ROWS = 3000
DATABASE = "agent.db"
STORED = {bytes(32): [(ChunkId(b"a" * 32), -7), (ChunkId(b"b" * 32), 9)], b"k" * 32: []}


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a stream that holds one database, kept once."""
    stream = Stream(tmp_path)
    draw = random.Random(1)
    change(stream, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    with closing(sqlite3.connect(stream.root / DATABASE)) as connection, connection:
        rows = [(number, prose(draw)) for number in range(ROWS)]
        connection.executemany("INSERT INTO notes VALUES (?, ?)", rows)
    assert stream.snapshot().files == 1
    return stream


@pytest.mark.parametrize("name", ["day.log", "day.bin"])
def test_a_log_that_grows_is_scanned_where_it_grew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A transcript of gigabytes grows by a few lines a day; a token in it is found as before."""
    monkeypatch.setattr(largefiles, "MEMORY_MAX_BYTES", MIB)
    stream, draw = Stream(tmp_path), random.Random(name)
    path, sizes = stream.root / name, list[int]()
    path.write_text("".join(prose(draw, 2000) for _ in range(60)))
    whole = path.stat().st_size
    feed = Scan.feed

    def counted(scan: Scan, data: bytes) -> None:
        sizes.append(len(data))
        feed(scan, data)

    monkeypatch.setattr(Scan, "feed", counted)
    scanned: list[int] = []
    for _ in range(4):
        sizes.clear()
        assert stream.snapshot().files == 1
        scanned.append(sum(sizes))
        with path.open("a") as file:
            file.write(prose(draw, 9))
    assert whole > 4 * MIB
    assert min(scanned[:2]) >= whole
    assert 0 < max(scanned[2:]) < MIB

    token = "gh" + "p_" + text(draw, 36)
    data = path.read_text()
    path.write_text(data[: whole // 2] + f"\n{token}\n" + data[whole // 2 :])
    result = stream.snapshot()
    if name == "day.log":
        assert (result.files, result.redacted) == (1, 1)
        assert token not in (stream.restored_root() / name).read_text()
    else:
        assert (result.files, result.excluded) == (0, 1)


def test_a_memory_that_does_not_fit_its_sum_is_not_believed(tmp_path: Path) -> None:
    """What it says of a chunk ends up in a manifest."""
    with closing(Catalog(bytes(tmp_path / "catalog.db"))) as catalog:
        memories = ScanMemories(catalog, "1")
        memories.keep(b"/a", ScanMemory(), STORED)
        noted = catalog.scanned(b"/a") or b""
        assert memories.find(b"/a").stored == STORED

        for at in range(2, len(noted)):
            catalog.keep_scanned(b"/a", noted[:at] + bytes((noted[at] ^ 1,)) + noted[at + 1 :])
            assert memories.find(b"/a").stored == {}
        catalog.keep_scanned(b"/b", noted)
        assert memories.find(b"/b").stored == {}


@pytest.mark.parametrize("rows", [1, ROWS])
def test_parts_whose_packs_are_gone_are_put_again(stream: Stream, rows: int) -> None:
    """A part that is only named again must lie in a pack that is there (law 3)."""
    packs = packs_of(stream)
    for name in packs:
        stream.object_path(name).unlink()
    change(stream, "UPDATE notes SET text = 'other words' WHERE id < ?", rows)

    stream.snapshot()

    assert packs.isdisjoint(packs_of(stream))
    assert texts(stream.restored_root() / DATABASE) == texts(stream.root / DATABASE)


@pytest.mark.parametrize("page_bytes", [512, 4096, 16384, 65536])
def test_a_changed_database_comes_back_as_it_was(stream: Stream, page_bytes: int) -> None:
    """Most of it is only named: every page has to be named at its place."""
    change(stream, f"PRAGMA page_size = {page_bytes}")
    change(stream, "VACUUM")
    stream.snapshot()
    for statement in (
        "UPDATE notes SET text = 'other words' WHERE id % 700 = 3",
        "DELETE FROM notes WHERE id BETWEEN 500 AND 900",
        "INSERT INTO notes SELECT id + 100000, text || 'x' FROM notes WHERE id < 400",
        "PRAGMA user_version = 7",
    ):
        change(stream, statement)
        result = stream.snapshot()

        back = stream.restored_root() / DATABASE
        assert (result.files, result.excluded) == (1, 0)
        assert texts(back) == texts(stream.root / DATABASE)
        assert back.read_bytes()[100:] == without_slack(stream)[100:]


def test_the_same_bytes_as_pages_of_another_size_are_cut_anew(stream: Stream) -> None:
    """Chunks of another length would be listed with the length of these."""
    change(stream, "CREATE TABLE zeros (data BLOB)")
    for page_bytes in (4096, 32768, 4096):
        change(stream, "DELETE FROM zeros")
        change(stream, f"PRAGMA page_size = {page_bytes}")
        change(stream, "VACUUM")
        change(stream, "INSERT INTO zeros VALUES (zeroblob(3000000))")
        stream.snapshot()

        assert texts(stream.restored_root() / DATABASE) == texts(stream.root / DATABASE)


def without_slack(stream: Stream) -> bytes:
    """Return the database without what its pages leave unread."""
    copy = stream.root.parent / "copy"
    copy.write_bytes((stream.root / DATABASE).read_bytes())
    clear_slack(bytes(copy))
    return copy.read_bytes()


def packs_of(stream: Stream) -> set[str]:
    """Return the packs that the newest manifest pins."""
    statements = stream.statements()
    return {pin.name for pin in statements[max(statements)].pins}


def texts(path: Path) -> list[tuple[int, str]]:
    """Return all rows."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT id, text FROM notes ORDER BY id").fetchall()


def change(stream: Stream, statement: str, *values: object) -> None:
    """Execute one statement."""
    with closing(sqlite3.connect(stream.root / DATABASE)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize("row", [0, ROWS // 2, ROWS - 1])
@pytest.mark.parametrize("padding", [0, 300, 9000])
def test_a_token_in_one_changed_row_leaves_the_database_out(
    stream: Stream, row: int, padding: int
) -> None:
    """What is new is scanned however little it is, and wherever it lies (A2a)."""
    token = "gh" + "p_" + text(random.Random(row), 36)
    change(stream, "UPDATE notes SET text = ? WHERE id = ?", "x " * padding + token, row)

    left_out = stream.snapshot()
    change(stream, "UPDATE notes SET text = 'nothing' WHERE id = ?", row)
    change(stream, "VACUUM")
    kept = stream.snapshot()

    assert (left_out.files, left_out.excluded) == (0, 1)
    assert (kept.files, kept.excluded) == (1, 0)


def test_a_changed_row_costs_no_scan_of_the_whole(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large database changes every day; to scan all of it would cost more than all else."""
    sizes: list[int] = []
    feed = Scan.feed

    def counted(scan: Scan, data: bytes) -> None:
        sizes.append(len(data))
        feed(scan, data)

    monkeypatch.setattr(Scan, "feed", counted)
    change(stream, "UPDATE notes SET text = 'other words' WHERE id = 77")

    assert stream.snapshot().files == 1

    assert 0 < sum(sizes) < (stream.root / DATABASE).stat().st_size // 3


def test_what_is_found_with_a_memory_is_looked_for_in_the_whole(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the edge of a part may stand the end of a word that is no token in the whole."""
    looked: list[bool] = []

    def seen_at_an_edge(
        path: bytes, name: bytes, *given: object, memory: ScanMemory, **more: object
    ) -> CleanedFile:
        done = clean_file(path, name, *given, memory=memory, **more)  # type: ignore[arg-type]  # passed on
        looked.append(memory.has_skipped)
        if not memory.has_skipped:
            return done
        hit = Judged(decision=Decision.EXCLUDE, rule="token-github", stage=Stage.CONTENT)
        return CleanedFile(cleaned=Cleaned(judged=hit), path=done.path, size=done.size)

    monkeypatch.setattr(contents, "clean_file", seen_at_an_edge)
    change(stream, "UPDATE notes SET text = 'other words' WHERE id = 77")

    result = stream.snapshot()

    assert looked == [True, False]
    assert (result.files, result.excluded) == (1, 0)


def test_a_token_that_is_gone_from_the_second_copy_is_found_when_it_comes_back(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the scan of the first copy noted would let the token by for ever (A2a)."""
    token = "gh" + "p_" + text(random.Random("back"), 36)
    plain = dict(texts(stream.root / DATABASE))[77]
    held = plain[: -len(token) - 1] + " " + token
    copies: list[bool] = []

    def put(value: str) -> None:
        with closing(sqlite3.connect(stream.root / DATABASE)) as connection, connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("UPDATE notes SET text = ? WHERE id = 77", (value,))

    def then_gone(path: bytes, *given: object, **more: object) -> CleanedFile:
        copies.append(token.encode() in Path(path.decode()).read_bytes())
        put(plain)
        return clean_file(path, *given, **more)  # type: ignore[arg-type]  # passed on

    put(plain)
    assert stream.snapshot().files == 1
    put(held)
    with monkeypatch.context() as patch:
        patch.setattr(contents, "clean_file", then_gone)
        assert stream.snapshot().files == 1
    assert copies == [True, False]

    put(held)
    result = stream.snapshot()

    assert (result.files, result.excluded) == (0, 1)


def test_a_memory_is_believed_by_its_policy_alone_and_goes_with_its_file(tmp_path: Path) -> None:
    """Another version has other rules; and what is gone must not be held for ever."""
    with closing(Catalog(bytes(tmp_path / "catalog.db"))) as catalog:
        memory = ScanMemory()
        scan = memory.scan(lambda: pytest.fail("nothing was fed"))
        for path in (b"/a/b", b"/a/b.db", b"/a/c/d", b"/a/c0"):
            ScanMemories(catalog, "1").keep(path, memory, STORED)
        del scan
        catalog.forget_dir(b"/a/c")
        catalog.forget_dir(b"/a/b")

        paths = (b"/a/b", b"/a/b.db", b"/a/c/d", b"/a/c0")
        held = [path for path in paths if catalog.scanned(path) is not None]
        assert held == [b"/a/b.db", b"/a/c0"]
        found = ScanMemories(catalog, "1").find(b"/a/b.db")
        assert (found.scanned._before, found.stored) == (memory.encode(), STORED)
        assert ScanMemories(catalog, "2").find(b"/a/b.db").stored == {}
        assert ScanMemories(catalog, "1").find(b"/a").stored == {}
