"""The independent reader against the independent writer, both made from the specification.

What they agree on without durarepo is what the pages say; where a change of either breaks a
test here, one of the two has read the page differently. The vectors hold every single code.
"""

import ast
import hashlib
import io
import os
import re
import sqlite3
import stat
import subprocess
import sys
import tokenize
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.interop import minireader as reader
from tests.interop import miniwriter as writer
from tests.machines.stream import Stream
from tests.vectors.cardreader import read_key

HERE = Path(__file__).parent
ROOT = b"/srv/agent"
MOST_LINES, MOST_COLUMNS = 400, 100


def varied() -> dict[bytes, writer.Node]:
    """Return a tree with one of everything that a reader restores."""
    return {
        ROOT: writer.directory(
            {
                b"a.txt": writer.file(b"hello\n", mode=0o600),
                b"big": writer.file(b"x" * 70000, b"y" * 9),
                b"deep": writer.directory(
                    {b"more": writer.directory({b"\xff\xfe": writer.file(b"not text")})}, mode=0o500
                ),
                b"empty": writer.file(),
                b"holes": writer.file(b"one", 100000, b"two", 300000, b"three", 7, depth=2),
                b"hollow": writer.directory({}),
                b"link-1": writer.file(b"linked", link=7),
                b"link-2": writer.file(b"linked", link=7),
                b"link-3": writer.file(b"linked", link=7, mode=0o600),
                b"pipe": writer.special(writer.FIFO),
                b"socket": writer.special(writer.SOCKET),
                b"symlink": writer.symlink(b"/etc/passwd"),
                b"tagged": writer.file(b"t", xattrs=[[b"user.a", b"1"]]),
            }
        ),
        b"/var/log": writer.directory({b"log": writer.file(b"line\n")}),
    }


def small(content: bytes = b"hello\n") -> dict[bytes, writer.Node]:
    """Return the least tree with a file in it."""
    return {ROOT: writer.directory({b"a.txt": writer.file(content)})}


def held_by(repository: writer.Repository, **more: Any) -> Any:
    """Return what a reader of ``repository`` holds."""
    given = {
        "stream": repository.stream,
        "locator": repository.locator,
        "owner_digest": repository.owner_digest,
        "identities": [repository.data[0].seed],
    }
    return reader.Held(**given | more)


def restore(repository: writer.Repository, folder: Path, **more: Any) -> dict[bytes, Any]:
    """Write ``repository`` below ``folder`` and restore it to ``folder``/restored."""
    objects = repository.write(folder / "objects")
    held = more.pop("held", None) or held_by(repository)
    now = more.pop("now", repository.issued + 100)
    reader.restore(objects, folder / "restored", held, now, **more)
    done: dict[bytes, Any] = held.done
    return done


def check_refused(code: str, repository: writer.Repository, folder: Path, **more: Any) -> None:
    """Restore and see it refused with ``code``, and nothing left at the destination."""
    with pytest.raises(reader.Refused) as refusal:
        restore(repository, folder, **more)
    assert refusal.value.code == code
    assert [path.name for path in folder.iterdir()] == ["objects"]


# --- what comes back


def test_every_type_of_entry_comes_back_with_content_mode_and_time(tmp_path: Path) -> None:
    """The plainest promise: what was written is what is restored."""
    repository = writer.Repository()
    repository.snapshot(varied())

    restored = restore(repository, tmp_path)

    root = tmp_path / "restored" / "srv" / "agent"
    holes = b"one" + bytes(100000) + b"two" + bytes(300000) + b"three" + bytes(7)
    contents = {
        "a.txt": b"hello\n", "big": b"x" * 70000 + b"y" * 9, "empty": b"", "holes": holes,
        "link-1": b"linked", "link-3": b"linked", "tagged": b"t",
    }  # fmt: skip
    assert {name: (root / name).read_bytes() for name in contents} == contents
    assert ROOT + b"/deep/more/\xff\xfe" in restored
    assert os.listdir(os.fsencode(root / "deep/more")) == [b"\xff\xfe"]
    assert os.readlink(root / "symlink") == "/etc/passwd"
    assert stat.S_ISFIFO(os.lstat(root / "pipe").st_mode)
    assert stat.S_IMODE(os.lstat(root / "a.txt").st_mode) == 0o600
    assert stat.S_IMODE(os.lstat(root / "deep").st_mode) == 0o500
    times = {os.lstat(root / name).st_mtime_ns for name in [*contents, "symlink", "deep", "pipe"]}
    assert times == {1700000000 * 10**9 + 5}
    assert (tmp_path / "restored/var/log/log").read_bytes() == b"line\n"


def test_restored_files_are_reported_with_their_hashes(tmp_path: Path) -> None:
    """An auditor compares this list; a hash of something else would prove nothing."""
    repository = writer.Repository()
    repository.snapshot(small(b"content"))

    entry, value = restore(repository, tmp_path)[ROOT + b"/a.txt"]

    assert (entry[9], value) == (7, hashlib.sha256(b"content").digest())


def test_holes_take_no_space(tmp_path: Path) -> None:
    """A sparse file that comes back full may not fit on the disk it came from."""
    repository = writer.Repository()
    repository.snapshot({ROOT: writer.directory({b"f": writer.file(b"x", 64 << 20)})})

    restore(repository, tmp_path)

    about = os.stat(tmp_path / "restored/srv/agent/f")
    assert about.st_size == (64 << 20) + 1
    assert about.st_blocks * 512 < 1 << 20


def test_roots_of_other_components_come_back_and_are_no_part_of_the_files(tmp_path: Path) -> None:
    """They have an integrity hash of their own; counted twice, no reader would agree on one."""
    dump = writer.directory({b"dump.sql": writer.file(b"select 1;\n")})
    roots = {**small(), b"/.durarepo/components/dump": dump}
    repository = writer.Repository()
    repository.snapshot(roots)

    restore(repository, tmp_path)

    assert writer.files_component(roots) == writer.files_component(small())
    assert (tmp_path / "restored/.durarepo/components/dump/dump.sql").stat().st_size == 10


def test_hard_links_are_joined_only_where_all_metadata_agree(tmp_path: Path) -> None:
    """Two names that differ are two files, whatever group they claim."""
    repository = writer.Repository()
    repository.snapshot(varied())

    restore(repository, tmp_path)

    names = ("link-1", "link-2", "link-3")
    one, two, three = (os.stat(tmp_path / "restored/srv/agent" / name).st_ino for name in names)
    assert one == two
    assert two != three


def test_a_directory_of_several_leaves_comes_back(tmp_path: Path) -> None:
    """A node that the two read differently would lose part of a large directory."""
    names = [b"%06d" % number for number in range(12000)]
    children = {name: writer.file() for name in names}
    repository = writer.Repository()
    repository.snapshot({ROOT: writer.directory(children)})

    restore(repository, tmp_path)

    assert sorted(os.listdir(os.fsencode(tmp_path / "restored/srv/agent"))) == names


@pytest.mark.parametrize("n", [4, 8])
def test_both_numbers_of_stanzas_are_read(n: int, tmp_path: Path) -> None:
    """The number moves every offset behind it."""
    repository = writer.Repository(n=n)
    repository.snapshot(small())

    assert len(restore(repository, tmp_path)) == 2


def test_the_head_is_found_over_epochs_and_attempts(tmp_path: Path) -> None:
    """A reader that stops at the first epoch, or at junk in a slot, restores yesterday."""
    repository = writer.Repository()
    repository.snapshot(small(b"first"))
    slot = writer.slot_key(repository.naming[1])
    repository.objects[writer.manifest_slot(slot, 1, 2)] = bytes(32768)
    repository.snapshot(small(b"second"), attempt=1)
    repository.begin_epoch()
    repository.publish()
    repository.snapshot(small(b"third"))

    restore(repository, tmp_path)

    assert (tmp_path / "restored/srv/agent/a.txt").read_bytes() == b"third"


def test_packs_of_an_epoch_before_are_read_as_of_that_epoch(tmp_path: Path) -> None:
    """A new epoch that keeps the naming key pins old packs, whose seals name the old epoch."""
    repository = writer.Repository()
    repository.snapshot(small(b"kept"))
    repository.begin_epoch(naming=repository.naming[1])
    repository.publish()
    repository.snapshot({**small(b"kept"), b"/var/new": writer.directory({})})

    restore(repository, tmp_path)

    assert len(repository.pins) == 2
    assert (tmp_path / "restored/srv/agent/a.txt").read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("code", "change"),
    [("trust.registry-version", None), ("integrity.seal", lambda data: data[:-1] + b"\0")],
)
def test_a_pin_whose_registry_is_gone_is_refused(
    code: str, change: Callable[[bytes], bytes] | None, tmp_path: Path
) -> None:
    """Without it nobody knows which epoch, and so which keys, the pack was sealed under."""
    repository = writer.Repository()
    repository.snapshot(small(b"kept"))
    repository.begin_epoch(naming=repository.naming[1])
    repository.publish()
    repository.snapshot(small(b"kept"))
    old = repository.objects.pop(writer.registry_slot(repository.locator, 1))
    if change is not None:
        repository.objects[writer.registry_slot(repository.locator, 1)] = change(old)

    check_refused(code, repository, tmp_path, held=held_by(repository, highest=2))


def test_chunks_of_a_bad_pack_are_taken_from_its_replacement(tmp_path: Path) -> None:
    """A repair that is noted and not followed would leave the damage in every restore."""
    repository = writer.Repository()
    chunks = repository.chunks()
    nested = repository.nested_map(small(b"kept"), chunks)
    bad, good = (repository.store(chunks) for _ in range(2))
    assert bad is not None
    assert good is not None
    repository.objects[bad.name.hex()] = bytes(32768)
    repair = [[bad.name, [good.name]]]

    check = {"statement": _of_statement(12, value=repair)}
    repository.commit_nested(nested, edits=check)
    restore(repository, tmp_path)

    assert (tmp_path / "restored/srv/agent/a.txt").read_bytes() == b"kept"


def test_a_pack_is_found_in_its_second_place(tmp_path: Path) -> None:
    """Where the first place lost it, the second is why it was written twice."""
    repository = writer.Repository()
    repository.snapshot(small())
    name = next(iter(repository.pins))
    slot = writer.slot_key(repository.naming[1])
    repository.objects[writer.pack_slot(slot, name)] = repository.objects.pop(name.hex())

    assert len(restore(repository, tmp_path)) == 2


def test_an_older_number_is_restored_only_as_archival(tmp_path: Path) -> None:
    """Yesterday's state restored as today's is a rollback; asked for as such it is history."""
    repository = writer.Repository()
    repository.snapshot(small(b"old"))
    repository.snapshot(small(b"new"))
    now = repository.issued + 10 * 86400

    check_refused("fresh.expired", repository, tmp_path, sequence=1, now=now)
    restore(repository, tmp_path, sequence=1, now=now, archival=True)

    assert (tmp_path / "restored/srv/agent/a.txt").read_bytes() == b"old"


def test_what_the_present_build_writes_is_restored(tmp_path: Path) -> None:
    """The writer of this day is held against the page, not only those of years ago."""
    stream = Stream(tmp_path)
    (stream.root / "deep").mkdir()
    for day in (b"one", b"two"):
        (stream.root / "a.txt").write_bytes(day)
        (stream.root / "deep" / "large").write_bytes(os.urandom(300_000) + day)
        with closing(sqlite3.connect(stream.root / "agent.db")) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
        stream.snapshot()

    restored = stream.restored_root()

    for name in ("a.txt", "deep/large"):
        assert (restored / name).read_bytes() == (stream.root / name).read_bytes()
    with closing(sqlite3.connect(restored / "agent.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# --- tampering


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_no_single_changed_byte_of_any_object_goes_unseen(where: str, tmp_path: Path) -> None:
    """One flipped bit in storage must be a refusal, whichever object it hits."""
    repository = writer.Repository()
    repository.snapshot(small(os.urandom(20000)))

    for turn, (name, data) in enumerate(list(repository.objects.items())):
        at = {"first": 0, "middle": 10000, "last": len(data) - 1}[where]
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        repository.objects[name] = changed
        folder = tmp_path / str(turn)
        folder.mkdir()

        with pytest.raises(reader.Refused):
            restore(repository, folder)

        assert [path.name for path in folder.iterdir()] == ["objects"]
        repository.objects[name] = data


def _swap_signature(document: list[Any]) -> list[Any]:
    return [*document[:2], bytes(64), document[3]]


def _swap_second_signature(document: list[Any]) -> list[Any]:
    return [*document[:3], bytes(3309)]


def _of_statement(*path: int, value: object) -> Callable[[dict[int, Any]], dict[int, Any]]:
    def change(statement: dict[int, Any]) -> dict[int, Any]:
        inner = statement
        for key in path[:-1]:
            inner[key] = dict(inner[key])
            inner = inner[key]
        inner[path[-1]] = value
        return statement

    return change


@pytest.mark.parametrize(
    ("code", "edits"),
    [
        ("integrity.version", {"version_byte": b"\x02"}),
        ("integrity.mark", {"mark": bytes(32)}),
        ("integrity.commitment", {"commitment": bytes(32)}),
        ("integrity.padding", {"zeros": lambda zeros: zeros[:-1] + b"\x01"}),
        ("integrity.document", {"document": lambda document: document[:3]}),
        ("trust.type", {"type": "durarepo/1/registry"}),
        ("trust.signature", {"document": _swap_signature}),
        ("trust.signature", {"document": _swap_second_signature}),
        ("trust.signature", {"context": b"another"}),
        ("trust.unknown-signer", {"statement": _of_statement(0, 4, value=bytes(32))}),
        ("integrity.statement", {"statement": _of_statement(16, value=1)}),
        ("integrity.statement", {"statement": _of_statement(4, value=1)}),
        ("trust.header", {"header_digest": bytes(32)}),
        ("trust.stream", {"statement": _of_statement(0, 0, value="another")}),
        ("trust.stream", {"statement": _of_statement(0, 3, value=True)}),
        ("trust.epoch", {"statement": _of_statement(0, 1, value=2)}),
        ("trust.registry-version", {"statement": _of_statement(1, 4, value=9)}),
        ("trust.sequence", {"statement": _of_statement(1, 0, value=2)}),
        ("trust.link", {"statement": _of_statement(1, 1, value=bytes(31) + b"\1")}),
        ("trust.floor", {"statement": _of_statement(14, value=2)}),
        ("trust.lifetime", {"statement": _of_statement(2, 1, value=1900000000)}),
        ("integrity.pins", {"statement": _of_statement(13, value=[b"b" * 32, b"a" * 32])}),
        ("integrity.nested", {"statement": _of_statement(15, value=bytes(5000))}),
        ("integrity.cbor-keys", {"statement_bytes": b"\xa1\x18\x18\x00"}),
    ],
)
def test_an_envelope_altered_before_it_was_signed_is_refused(
    code: str, edits: dict[str, Any], tmp_path: Path
) -> None:
    """A signature proves who, not what: each field is checked behind it."""
    repository = writer.Repository()
    repository.snapshot(small(), edits=edits)

    check_refused(code, repository, tmp_path)


@pytest.mark.parametrize(
    ("code", "edits"),
    [
        ("integrity.nested-form", {"nested": lambda nested: {**nested, 8: 1}}),
        ("integrity.component-index", {"nested": _of_statement(2, value=bytes(32))}),
        ("integrity.nested", {"commitment": bytes(32)}),
        ("integrity.nested", {"compressed": b"not zstd"}),
        ("integrity.cbor-length", {"nested_bytes": lambda data: data + b"\0"}),
    ],
)
def test_an_altered_nested_part_is_refused(
    code: str, edits: dict[str, Any], tmp_path: Path
) -> None:
    """The nested part is read by fewer, and must be held as strictly."""
    repository = writer.Repository()
    repository.snapshot(small(), nested_edits=edits)

    check_refused(code, repository, tmp_path)


def _flip(data: list[bytes]) -> list[bytes]:
    return [data[0][:-1] + bytes([data[0][-1] ^ 1]), *data[1:]]


@pytest.mark.parametrize(
    ("code", "edits"),
    [
        ("integrity.version", {"version_byte": b"\x02"}),
        ("integrity.trailer", {"trailer": bytes(36)}),
        ("integrity.trailer", {"position": 100}),
        ("integrity.index-seal", {"index_zeros": lambda zeros: b"\1" + zeros[1:]}),
        ("integrity.index-form", {"index_plain": lambda plain: plain + b"\0"}),
        ("integrity.pack-header", {"tables": lambda one: {**one, "header_digest": bytes(32)}}),
        ("integrity.frame-digest", {"tables": lambda one: {**one, "digests": [bytes(32)] * 2}}),
        ("integrity.commitment", {"commitment": bytes(32)}),
        ("integrity.frame-seal", {"ciphers": _flip}),
        ("integrity.frame-inflate", {"stored": lambda stored: [stored[0], b"not zstd"]}),
        ("integrity.chunk-id", {"plains": lambda plains: [b"HELLO\n", *plains[1:]]}),
    ],
)
def test_an_altered_pack_is_refused(code: str, edits: dict[str, Any], tmp_path: Path) -> None:
    """Whoever can seal a pack cannot pass off other bytes under a chunk's id."""
    repository = writer.Repository()
    repository.snapshot(small(), pack_edits=edits)

    check_refused(code, repository, tmp_path)


@pytest.mark.parametrize(
    ("code", "node"),
    [
        ("integrity.name", writer.directory({b"..": writer.file(b"x")})),
        ("integrity.name", writer.directory({b"a/b": writer.file(b"x")})),
        ("integrity.entry", writer.directory({b"a": writer.file(b"x", mode=4096)})),
        ("integrity.entry", writer.directory({b"a": writer.file(b"x", target=b"y")})),
        ("integrity.content", writer.directory({b"a": writer.file(b"x", b"y", size=3)})),
        ("integrity.file-hash", writer.directory({b"a": writer.file(b"x", 1, sha256=bytes(32))})),
        ("integrity.chunk-missing", writer.directory({b"a": writer.file(b"x", sha256=bytes(32))})),
        ("integrity.component", writer.directory({}, tree=None)),
    ],
)
def test_a_hostile_tree_is_refused(code: str, node: writer.Node, tmp_path: Path) -> None:
    """A name or a length out of bounds is how a restore writes where it must not."""
    repository = writer.Repository()
    if code == "integrity.component":
        chunks = repository.chunks()
        other = chunks.tree([chunks.entry(writer.file(b"more"), b"more")])
        node = writer.directory({}, tree=other)
        repository.store(chunks)
    repository.snapshot({ROOT: node})

    check_refused(code, repository, tmp_path)


def test_a_revoked_signer_is_good_only_up_to_the_named_envelope(tmp_path: Path) -> None:
    """A stolen key can date its work as it likes; only the chain tells what came before."""
    repository = writer.Repository()
    for content in (b"1", b"2", b"3"):
        repository.snapshot(small(content))
    repository.revoke(1, 3)
    repository.publish()
    (tmp_path / "good").mkdir()
    restore(repository, tmp_path / "good")

    repository.snapshot(small(b"4"))

    (tmp_path / "bad").mkdir()
    check_refused("fresh.revoked", repository, tmp_path / "bad")


def test_a_rolled_back_store_is_refused(tmp_path: Path) -> None:
    """Hiding the newest envelope must not pass for there being none."""
    repository = writer.Repository()
    repository.snapshot(small(b"1"))
    repository.snapshot(small(b"2"))
    seen = 2, repository.digest(2)
    slot = writer.slot_key(repository.naming[1])
    del repository.objects[writer.manifest_slot(slot, 1, 2)]

    check_refused("trust.rollback", repository, tmp_path, held=held_by(repository, high_water=seen))


def test_an_older_number_in_force_is_given_to_who_names_it(tmp_path: Path) -> None:
    """The head must not lie below the high-water; what was chosen by its number may."""
    repository = writer.Repository()
    repository.snapshot(small(b"1"))
    repository.snapshot(small(b"2"))
    held = held_by(repository, high_water=(2, repository.digest(2)))

    restore(repository, tmp_path, held=held, sequence=1)

    assert (tmp_path / "restored/srv/agent/a.txt").read_bytes() == b"1"


def test_an_envelope_that_follows_another_than_the_one_below_is_refused(tmp_path: Path) -> None:
    """The chain is what makes a signature of today speak for all days before."""
    repository = writer.Repository()
    repository.snapshot(small(b"1"))
    repository.snapshot(small(b"2"), edits={"statement": _of_statement(1, 1, value=bytes(32))})

    check_refused("trust.link", repository, tmp_path)


def test_a_second_envelope_of_one_number_is_a_fork(tmp_path: Path) -> None:
    """Two truths of one number: no reader may pick the one it likes."""
    repository = writer.Repository()
    repository.snapshot(small(b"1"))
    first = repository.envelopes.pop(1)
    repository.snapshot(small(b"2"), attempt=1)
    assert repository.envelopes[1] != first

    check_refused("trust.fork", repository, tmp_path)


def test_the_clock_is_asked_again_before_frames_and_before_the_end(tmp_path: Path) -> None:
    """A manifest that expires during a long restore must not be shown as current."""
    repository = writer.Repository()
    repository.snapshot(small())
    live, gone = repository.issued + 100, repository.issued + 2 * 86400

    for turn, good in enumerate((3, 4)):  # registry, chain, manifest; then also 6.1
        times = iter([live] * good)
        folder = tmp_path / str(turn)
        folder.mkdir()
        check_refused("fresh.expired", repository, folder, now=lambda t=times: next(t, gone))


def test_an_identity_that_is_no_recipient_opens_nothing(tmp_path: Path) -> None:
    """Being able to fetch is not being able to read."""
    repository = writer.Repository()
    repository.snapshot(small())

    held = held_by(repository, identities=[os.urandom(32)])

    check_refused("integrity.stanza", repository, tmp_path, held=held)


def test_another_owner_is_not_trusted(tmp_path: Path) -> None:
    """All keys in a registry are worth what its owner's signature is worth."""
    repository = writer.Repository()
    repository.snapshot(small())

    held = held_by(repository, owner_digest=bytes(32))

    check_refused("trust.owner", repository, tmp_path, held=held)


# --- the command line and the page


def test_the_command_line_restores_with_key_files_alone(tmp_path: Path) -> None:
    """What an auditor is handed is a folder, three key files and this one file."""
    repository = writer.Repository()
    repository.snapshot(small(b"audited"))
    repository.write(tmp_path / "objects")
    keys = {
        "locator": repository.locator,
        "owner-public": repository.owner.public,
        "identity": repository.data[0].seed,
    }
    given = [str(tmp_path / "objects"), str(tmp_path / "restored"), "notes"]
    given.append(str(repository.issued + 100))
    for kind, data in keys.items():
        (tmp_path / kind).write_text("# kept in the safe\n" + writer.key_line(kind, data))
        given.append(str(tmp_path / kind))

    run = subprocess.run(
        [sys.executable, "-I", HERE / "minireader.py", *given],
        capture_output=True, check=True, cwd=tmp_path, text=True,
    )  # fmt: skip

    assert hashlib.sha256(b"audited").hexdigest() + " 7 b'/srv/agent/a.txt'" in run.stdout
    assert (tmp_path / "restored/srv/agent/a.txt").read_bytes() == b"audited"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("keys.malformed", writer.key_line("locator", bytes(31))),
        ("keys.malformed", writer.key_line("naming", bytes(32))),
        ("keys.malformed", writer.key_line("locator", b"\xab" * 32).replace("ab", "AB")),
        ("keys.malformed", writer.key_line("locator", bytes(32), check=bytes(4))),
        ("keys.malformed", writer.key_line("locator", bytes(32))[:-1]),
    ],
)
def test_a_key_file_in_another_form_is_refused(code: str, line: str) -> None:
    """A key that is read leniently is a key that two programs read differently."""
    with pytest.raises(reader.Refused) as refusal:
        read_key(line, "locator")

    assert refusal.value.code == code


def test_the_reader_fits_in_400_lines() -> None:
    """The length of a complete reader is the measure of how simple the format is."""
    text = (HERE / "minireader.py").read_text()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)

    assert len(text.splitlines()) <= MOST_LINES
    assert max(map(len, text.splitlines())) <= MOST_COLUMNS
    assert ";" not in {token.string for token in tokens}


def _telling(text: str) -> set[str]:
    """Return the lines of some source that say something of their own."""
    lines = {" ".join(line.split()) for line in text.splitlines()}
    usual = re.compile(r"(from|import|@|else\b|return \w+$|#)")
    return {line for line in lines if len(line.replace(" ", "")) >= 12 and not usual.match(line)}


def test_the_reader_shares_no_line_with_durarepo() -> None:
    """Two programs that were copied from each other agree on each other's mistakes."""
    library = "\n".join(path.read_text() for path in (HERE.parents[1] / "durarepo").rglob("*.py"))
    own, others = _telling((HERE / "minireader.py").read_text()), _telling(library)

    assert len(own) > 300
    assert len(others) > 5000
    assert own & others == set()


@pytest.mark.parametrize("name", ["minireader.py", "miniwriter.py"])
def test_reader_and_writer_import_nothing_of_durarepo_or_of_each_other(name: str) -> None:
    """A second implementation that borrows from the first proves nothing."""
    tree = ast.parse((HERE / name).read_text())
    allowed = {"zstandard", "cryptography", *sys.stdlib_module_names}

    nodes = list(ast.walk(tree))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    called = {node.func.id for node in nodes if isinstance(node, ast.Call)
              and isinstance(node.func, ast.Name)}  # fmt: skip

    assert {module.partition(".")[0] for module in modules} <= allowed
    assert not called & {"__import__", "exec", "eval"}
    assert "importlib" not in modules


def test_the_reader_reads_no_clock() -> None:
    """The live time is an argument, so that a verdict can be repeated years later."""
    tree = ast.parse((HERE / "minireader.py").read_text())

    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    imported = {alias.name for node in imports for alias in node.names}

    assert not imported & {"time", "datetime"}
