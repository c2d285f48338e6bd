"""Old snapshots judged by the rules of today: what was stored before a rule was there."""
# ruff: noqa: S311 - seeds of a test

import base64
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from durarepo.core.errors import KeyMaterialError
from durarepo.core.progress import SilentProgress
from durarepo.operations.exclude import judge_paths
from durarepo.operations.verify_secrets import SecretsVerified, StoredSecret, verify_secrets
from durarepo.policy import decide
from durarepo.policy.decide import KEPT, ContentPolicy, Judged
from durarepo.policy.rules import Decision, Stage
from durarepo.policy.scanning import CLEAN, Findings, Scan
from durarepo.repository import exclusion
from durarepo.source import sqliteclean
from durarepo.source.pathjudge import PathJudge
from durarepo.source.sqliteclean import Cleaned
from tests.machines.stream import Stream, fill, later
from tests.policy.fresh import pem, text

DAY = 86_400
DRAW = random.Random("stored")
TOKEN = "gh" + "p_" + text(DRAW, 36)


@contextmanager
def without_rules() -> Iterator[None]:
    """A program of before: its policy leaves nothing out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ContentPolicy, "judge", lambda *_: KEPT)
        patch.setattr(ContentPolicy, "judge_scanned", lambda *_: KEPT)
        patch.setattr(ContentPolicy, "holds_secret", lambda *_: False)
        patch.setattr(PathJudge, "__call__", lambda *_: None)
        patch.setattr(Scan, "finish", lambda _: CLEAN)
        patch.setattr(sqliteclean, "_cleaned", lambda *_: Cleaned(judged=KEPT))
        patch.setattr(exclusion, "policy_version", lambda: "0.before")
        yield


def _look(stream: Stream, *, now: int | None = None) -> SecretsVerified:
    def clock() -> int:
        return later() if now is None else now

    with stream.open() as repository:
        return verify_secrets(repository, clock=clock, progress=SilentProgress())


def _by_path(stream: Stream, found: SecretsVerified) -> dict[str, StoredSecret]:
    root = bytes(stream.root) + b"/"
    return {os.fsdecode((one.path or b"").removeprefix(root)): one for one in found.found}


def _login_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
        connection.execute("INSERT INTO ItemTable VALUES ('cursorAuth/x', ?)", (text(DRAW, 48),))
        connection.commit()


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """A stream whose first snapshot was taken before there were rules."""
    kept = Stream(tmp_path)
    files = {
        "notes.md": f"the token is {TOKEN}\n".encode(),
        "copy/notes.md": f"the token is {TOKEN}\n".encode(),
        "deep/er/server.txt": pem(DRAW).encode(),
        ".netrc": b"machine x login y password z\n",
        ".aws/credentials": b"[default]\n",
        "config.yaml": f"db:\n  password: '{text(DRAW, 30)}'\n".encode(),
        "encoded.bin": b"x: " + base64.b64encode(pem(DRAW).encode()),
        f"by-{TOKEN}.md": b"harmless\n",
        "node_modules/x.js": b"harmless\n",
        "kept.md": b"harmless\n",
        "blob.bin": random.Random(4).randbytes(300_000),
        "large.log": b"line\n" * 600_000 + TOKEN.encode() + b"\n",
    }
    fill(kept.root, files)
    os.symlink(f"https://x/{TOKEN}", kept.root / "link")
    os.setxattr(kept.root / "kept.md", "user.login", TOKEN.encode())
    (kept.root / "User").mkdir()
    _login_database(kept.root / "User" / "state.vscdb")
    with without_rules():
        kept.snapshot()
    return kept


EXPECTED = {
    "notes.md": ("token-github", Stage.STRUCTURED),
    "copy/notes.md": ("token-github", Stage.STRUCTURED),
    "large.log": ("token-github", Stage.STRUCTURED),
    "link": ("token-github", Stage.CONTENT),
    "kept.md": ("token-github", Stage.CONTENT),
    "deep/er/server.txt": ("key-pem", Stage.CONTENT),
    "encoded.bin": ("key-base64", Stage.CONTENT),
    ".netrc": ("store-login", Stage.PATH),
    ".aws/credentials": ("store-cloud", Stage.PATH),
    "config.yaml": ("assigned", Stage.STRUCTURED),
    "User/state.vscdb": ("sqlite-editor-login", Stage.STRUCTURED),
    "": ("path-secret", Stage.PATH),
}


def test_every_kind_of_secret_in_an_old_snapshot_is_told(stream: Stream) -> None:
    """A rule that came late must still find what was stored before it."""
    found = _look(stream)

    told = _by_path(stream, found)
    assert {path: (one.rule, one.stage) for path, one in told.items()} == EXPECTED
    assert {one.sequences for one in found.found} == {(1,)}
    assert (found.unscanned, found.unreadable, found.damage) == (0, 0, None)


def test_a_path_that_holds_a_secret_is_told_by_a_keyed_short_id(stream: Stream) -> None:
    """A report of a leak must not be one (decision 13)."""
    found = _look(stream)

    (hidden,) = [one for one in found.found if one.path is None]
    assert hidden.path_id is not None
    assert len(hidden.path_id) == 16
    assert TOKEN not in repr(found)
    assert all(one.path_id is None for one in found.found if one.path is not None)


def test_the_manifests_that_list_a_secret_are_named(stream: Stream) -> None:
    """Whoever retires manifests has to know which; the snapshot of today is clean."""
    with without_rules():
        stream.snapshot()
    stream.snapshot()

    found = _look(stream)

    assert found.manifests == 3
    assert {one.sequences for one in found.found} == {(1, 2)}


def test_each_content_is_read_once_however_often_it_is_listed(stream: Stream) -> None:
    """Hundreds of snapshots list the same files; reading each again would never end."""
    once = _look(stream)
    with without_rules():
        stream.snapshot()
        (stream.root / "kept.md").rename(stream.root / "k.md")
        stream.snapshot()

    again = _look(stream)

    assert again.bytes <= once.bytes + len(b"harmless\n")
    assert again.contents <= once.contents + 1


def test_what_only_an_expired_manifest_pins_is_not_decrypted(stream: Stream) -> None:
    """After 24 hours it takes a person to open data (AICEP 10.5.3); names are still told."""
    found = _look(stream, now=int(time.time()) + 2 * DAY)

    assert found.contents == 0
    assert found.unscanned > 5
    rules = {(one.rule, one.stage) for one in found.found}
    assert rules == {
        ("store-login", Stage.PATH),
        ("store-cloud", Stage.PATH),
        ("path-secret", Stage.PATH),
        ("token-github", Stage.CONTENT),  # the target of a link and an attribute, in the listing
    }


def test_content_of_an_expired_manifest_is_scanned_if_a_new_one_pins_it(stream: Stream) -> None:
    """Most of what is old is still there; the rule of 24 hours protects none of it."""
    stream.clock = lambda: int(time.time()) + 2 * DAY
    with without_rules():
        stream.snapshot()

    found = _look(stream, now=int(time.time()) + 2 * DAY + 60)

    assert found.unscanned == 0
    assert {one.sequences for one in found.found} == {(1, 2)}


def test_a_file_too_large_for_memory_is_scanned_in_pieces(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transcript of gigabytes must neither be passed over nor held."""
    for module in (decide, __import__("durarepo.operations.verify_secrets", fromlist=["x"])):
        monkeypatch.setattr(module, "MEMORY_MAX_BYTES", 100_000)

    told = _by_path(stream, _look(stream))

    assert (told["large.log"].rule, told["large.log"].stage) == EXPECTED["large.log"]


def test_a_damaged_database_is_judged_as_it_was_kept(stream: Stream) -> None:
    """It is kept as bytes; that nobody can read it row by row is no secret (a false alarm)."""
    path = stream.root / "work.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (a TEXT UNIQUE, b TEXT)")
        rows = [(f"k{number}", "plain note " * 9) for number in range(300)]
        connection.executemany("INSERT INTO notes VALUES (?, ?)", rows)
        connection.commit()
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 3 + 64] = bytes(range(64))
    path.write_bytes(data)
    (planned,) = judge_paths(bytes(stream.root), [bytes(path)])
    stream.snapshot()

    found = _look(stream)

    assert planned.decision is Decision.INCLUDE
    assert bytes(path) not in [one.path for one in found.found]
    assert found.contents > 0


def test_damage_is_counted_and_ends_nothing(stream: Stream) -> None:
    """One bad pack must not hide what the others hold."""
    pins = stream.statements()[1].pins
    largest = stream.object_path(max(pins, key=lambda pin: pin.size).name)
    data = bytearray(largest.read_bytes())
    at = len(data) // 2
    data[at : at + 64] = bytes(64)
    largest.chmod(0o600)
    largest.write_bytes(data)

    found = _look(stream)

    assert found.unreadable > 0
    assert found.damage is not None
    assert ".netrc" in _by_path(stream, found)


def test_without_an_identity_nothing_can_be_looked_at(tmp_path: Path) -> None:
    """A computer that only writes cannot read, and must not say that all is clean."""
    stream = Stream(tmp_path, put_only=True)
    fill(stream.root, {"a": b"b"})
    stream.snapshot()

    with pytest.raises(KeyMaterialError) as raised:
        _look(stream)

    assert raised.value.code == "keys.identity-absent"


def test_an_empty_stream_holds_no_secret(tmp_path: Path) -> None:
    """Nothing kept is an answer, not an error."""
    found = _look(Stream(tmp_path))

    assert (found.head, found.manifests, found.found) == (0, 0, ())


def test_a_verdict_keeps_no_data() -> None:
    """What is remembered of each content must not grow with its size, nor hold a value."""
    found = Findings(spans=frozenset({"token-github"}))

    assert ContentPolicy.judged_whole(found).data is None
    assert Judged.__slots__
