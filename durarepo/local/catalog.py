"""The catalogue: a local SQLite copy of what packs and trees say. May be deleted at any time.

It speeds things up and is believed for nothing that a check of stored bytes would answer: a
chunk's place is a hint that the pack's own index confirms. All writes of a run are one
transaction. What it says of a directory would end up in a manifest, so each such row carries a
sum. A catalogue that is damaged is set aside, and the next run builds a new one.
Source: spec/format.md 12; spec/decisions/0004-catalogue.md. Start at `Catalog`.
"""

import hashlib
import os
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from durarepo.core.errors import StoreError
from durarepo.core.names import ChunkId, Digest, ObjectName
from durarepo.store.atomic import shown

if TYPE_CHECKING:
    from durarepo.format.manifest import Pin

SCHEMA_VERSION = 3
_IDS_AT_ONCE = 500
_MAIN_FILES = (b"", b"-wal", b"-shm")
_SUM_BYTES = 16
_COUNT_BYTES = 8
_PRIMARY_CODE = 0xFF
_SCANNED_FACT = "scanned:"

Located: TypeAlias = tuple[int, int]
"""Row id of a pack, and number of the chunk within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRow:
    """What `log` shows of a manifest, noted when it was verified or made."""

    sequence: int
    epoch: int
    name: ObjectName
    digest: Digest
    issued: int
    expires: int
    type: int
    files: int
    dirs: int
    size_bytes: int
    signer: bytes
    complete: bool
    omissions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirRow:
    """What the last complete manifest held of one directory.

    ``record`` is what its listing said, ``entries`` the encoded entries in the same order,
    ``owners`` the packs that each entry needs, ``own`` those of its tree, ``pins`` all of these,
    as arrays of signed 32-bit owners. ``notes`` is what a run that finds the directory
    unchanged has to repeat: linked files, ledger lines, databases; empty if there is nothing.
    """

    path: bytes
    tree: ChunkId
    set_hash: bytes
    record: bytes
    entries: bytes
    owners: bytes
    pins: bytes
    own: bytes
    files: int
    size_bytes: int
    notes: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PackWeight:
    """Plain bytes of a pack, and how many of them lived when that was last looked up.

    ``live`` is None for a pack that is newer; ``plain`` is 0 where it is not known.
    """

    plain: int
    live: int | None


class Transaction:
    """One transaction of the catalogue, which may be undone although nothing failed."""

    def __init__(self) -> None:
        self.is_undone = False

    def undo(self) -> None:
        """Leave the catalogue as it was when the transaction began."""
        self.is_undone = True


class Catalog:
    """One open catalogue."""

    def __init__(self, path: bytes) -> None:
        """Open the catalogue at ``path``, or make a new one there.

        Raises:
            StoreError: ``catalog``: it cannot be made; ``catalog-damaged``: it was set aside.
        """
        self._path = path
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        connection = self._connected()
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == SCHEMA_VERSION:
                connection.execute("SELECT count(*) FROM facts").fetchone()
                return connection
            empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.OperationalError as error:
            connection.close()
            raise self._unusable(error) from error
        except sqlite3.DatabaseError:
            empty = False
        if not empty:
            connection.close()
            self._set_aside()
            connection = self._connected()
        from durarepo.local.catalog_schema import make_tables  # noqa: PLC0415 - slow to import

        try:
            connection.execute("PRAGMA journal_mode = WAL")
            make_tables(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            raise self._unusable(error) from error
        return connection

    def _connected(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(os.fsdecode(self._path), isolation_level=None, timeout=10.0)
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> StoreError:
        if self._is_full(error):
            return StoreError(
                "full",
                f"no space is left for the catalogue {shown(self._path)}",
                hint="free space there, then run the command again",
            )
        return StoreError(
            "catalog",
            f"cannot use the catalogue {shown(self._path)}: {type(error).__name__}",
            hint="check the disk and the folder's rights; the catalogue may be moved away",
        )

    def _is_full(self, error: sqlite3.Error) -> bool:
        """Return whether the disk is full; SQLite tells some of it as a failed write."""
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code != sqlite3.SQLITE_IOERR:
            return code == sqlite3.SQLITE_FULL
        try:
            return os.statvfs(os.path.dirname(self._path)).f_bavail == 0
        except OSError:
            return False

    def _set_aside(self) -> None:
        for suffix in _MAIN_FILES:
            source = self._path + suffix
            if os.path.lexists(source):
                os.replace(source, self._path + b".damaged" + suffix)

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Turn damage that shows while the catalogue is used into a set-aside and an error.

        Raises:
            StoreError: ``catalog-damaged`` or ``catalog``.
        """
        try:
            yield
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from error
        except sqlite3.DatabaseError as error:
            self._connection.close()
            self._set_aside()
            raise StoreError(
                "catalog-damaged",
                f"the catalogue {shown(self._path)} is damaged and was set aside",
                hint="run the command again; the catalogue is built anew",
            ) from error

    @contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """Make all that happens inside one durable step, or nothing of it."""
        with self.guarded():
            self._connection.execute("BEGIN IMMEDIATE")
            transaction = Transaction()
            try:
                yield transaction
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("ROLLBACK" if transaction.is_undone else "COMMIT")

    # --- facts ---

    def fact(self, name: str) -> bytes | None:
        """Return a fact by name, or None."""
        row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def set_fact(self, name: str, value: bytes) -> None:
        """Keep a fact."""
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def scanned(self, path: bytes) -> bytes | None:
        """Return what was noted when a file was scanned, or None."""
        return self.fact(_SCANNED_FACT + path.hex())

    def keep_scanned(self, path: bytes, noted: bytes) -> None:
        """Keep what is to be known when a file is scanned again, until `forget_dir`."""
        self.set_fact(_SCANNED_FACT + path.hex(), noted)

    # --- packs and chunks ---

    def pack_ids(self) -> dict[ObjectName, int]:
        """Return the row id of every known pack by its name."""
        rows = self._connection.execute("SELECT name, id FROM packs")
        return {ObjectName(bytes(name).hex()): row_id for name, row_id in rows}

    def pack_pins(self) -> "dict[int, Pin]":
        """Return the pin of every known pack by its row id."""
        from durarepo.format.manifest import Pin  # noqa: PLC0415 - lists of manifests ask no pins

        rows = self._connection.execute(
            "SELECT id, name, size, index_digest, registry_version FROM packs"
        )
        return {
            row[0]: Pin(
                name=ObjectName(bytes(row[1]).hex()),
                size=row[2],
                index_digest=Digest(bytes(row[3])),
                registry_version=row[4],
            )
            for row in rows
        }

    def add_pack(
        self, pin: "Pin", ids: Iterable[ChunkId], *, plain: int = 0, live: int | None = None
    ) -> int:
        """Note a pack with its chunks' ids in stored order; return its row id.

        Args:
            pin: names it.
            ids: of its chunks.
            plain: bytes of its chunks, 0 where that is not known.
            live: how many of them live; None where that has to be looked up.
        """
        cursor = self._connection.execute(
            "INSERT INTO packs (name, size, index_digest, registry_version, plain, live)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                bytes.fromhex(pin.name),
                pin.size,
                pin.index_digest,
                pin.registry_version,
                plain,
                live,
            ),
        )
        row_id = cursor.lastrowid or 0
        rows = sorted((chunk, row_id, number) for number, chunk in enumerate(ids))
        self._connection.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", rows)
        return row_id

    def add_group(self, group: int, pack: int) -> None:
        """Note that a group of chunks lies, wholly or in part, in a pack."""
        self._connection.execute("INSERT INTO groups VALUES (?, ?)", (group, pack))

    def groups(self) -> dict[int, list[int]]:
        """Return the packs of every group."""
        found: dict[int, list[int]] = {}
        for group, pack in self._connection.execute("SELECT id, pack FROM groups"):
            found.setdefault(group, []).append(pack)
        return found

    def last_group(self) -> int:
        """Return the highest number of a group, 0 where there is none."""
        row = self._connection.execute("SELECT max(id) FROM groups").fetchone()
        return row[0] or 0

    def find_chunk(self, chunk: ChunkId) -> Located | None:
        """Return where a chunk is said to lie, or None."""
        row: Located | None = self._connection.execute(
            "SELECT pack, number FROM chunks WHERE id = ?", (chunk,)
        ).fetchone()
        return row

    def has_chunks(self) -> bool:
        """Return whether any chunk is known."""
        return self._connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is not None

    # --- what lives ---

    def pack_weights(self) -> dict[int, PackWeight]:
        """Return the weight of every known pack by its row id."""
        rows = self._connection.execute("SELECT id, plain, live FROM packs")
        return {row[0]: PackWeight(plain=row[1], live=row[2]) for row in rows}

    def set_live_bytes(self, live: Mapping[int, int]) -> None:
        """Keep how many bytes live in packs, by row id."""
        self._connection.executemany(
            "UPDATE packs SET live = ? WHERE id = ?", [(size, row) for row, size in live.items()]
        )

    def keep_list(self, chunk: ChunkId, plaintext: bytes | memoryview) -> None:
        """Keep a chunk list, so that what it names can be told without an identity."""
        self._connection.execute("INSERT OR IGNORE INTO lists VALUES (?, ?)", (chunk, plaintext))

    def find_list(self, chunk: ChunkId) -> bytes | None:
        """Return a chunk list, or None."""
        row = self._connection.execute(
            "SELECT plaintext FROM lists WHERE id = ?", (chunk,)
        ).fetchone()
        return None if row is None else bytes(row[0])

    def forget_lists(self, *, but: Container[ChunkId]) -> None:
        """Forget all chunk lists but some."""
        held = self._connection.execute("SELECT id FROM lists").fetchall()
        gone = [row for row in held if row[0] not in but]
        self._connection.executemany("DELETE FROM lists WHERE id = ?", gone)

    # --- directories ---

    def find_dir(self, path: bytes) -> DirRow | None:
        """Return what is known of a directory, or None.

        Raises:
            sqlite3.DatabaseError: the row is not what was kept; see `guarded`.
        """
        row = self._connection.execute("SELECT * FROM dirs WHERE path = ?", (path,)).fetchone()
        return None if row is None else _checked(row)

    def iter_dirs(self, path: bytes) -> Iterator[DirRow]:
        """Yield what is known of a directory and of all below it, in any order.

        Raises:
            sqlite3.DatabaseError: as `find_dir`.
        """
        below = path.rstrip(b"/") + b"/"
        rows = self._connection.execute(
            "SELECT * FROM dirs WHERE path = ? OR (path >= ? AND path < ?)",
            (path, below, below[:-1] + b"0"),
        )
        for row in rows:
            yield _checked(row)

    def put_dirs(self, rows: list[DirRow]) -> None:
        """Keep directories, each in place of what was known of it."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO dirs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*cells, _sum_of(cells)) for cells in map(_cells_of, rows)],
        )

    def forget_dir(self, path: bytes) -> None:
        """Forget a directory and all below it, or what was noted of a file."""
        below = path.rstrip(b"/") + b"/"
        bounds = (path, below, below[:-1] + b"0")
        self._connection.execute(
            "DELETE FROM dirs WHERE path = ? OR (path >= ? AND path < ?)", bounds
        )
        self._connection.execute(
            "DELETE FROM facts WHERE name = ? OR (name >= ? AND name < ?)",
            [_SCANNED_FACT + one.hex() for one in bounds],
        )

    # --- manifests ---

    def add_manifest(self, row: ManifestRow) -> None:
        """Keep what `log` shows of a manifest."""
        self._connection.execute(
            "INSERT OR REPLACE INTO manifests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                row.sequence,
                row.epoch,
                bytes.fromhex(row.name),
                row.digest,
                row.issued,
                row.expires,
                row.type,
                row.files,
                row.dirs,
                row.size_bytes,
                row.signer,
                row.complete,
                row.omissions,
            ),
        )

    def manifest_bytes(self, sequence: int) -> int | None:
        """Return the bytes of all files of a manifest, or None where it is not known."""
        row = self._connection.execute(
            "SELECT bytes FROM manifests WHERE sequence = ?", (sequence,)
        ).fetchone()
        return None if row is None else int(row[0])

    def manifests(self) -> list[ManifestRow]:
        """Return the known manifests, newest first."""
        rows = self._connection.execute("SELECT * FROM manifests ORDER BY sequence DESC")
        return [
            ManifestRow(
                sequence=row[0],
                epoch=row[1],
                name=ObjectName(bytes(row[2]).hex()),
                digest=Digest(bytes(row[3])),
                issued=row[4],
                expires=row[5],
                type=row[6],
                files=row[7],
                dirs=row[8],
                size_bytes=row[9],
                signer=bytes(row[10]),
                complete=bool(row[11]),
                omissions=row[12],
            )
            for row in rows
        ]


_Cells: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, int, int, bytes]


def _cells_of(row: DirRow) -> _Cells:
    return (
        row.path,
        row.tree,
        row.set_hash,
        row.record,
        row.entries,
        row.owners,
        row.pins,
        row.own,
        row.files,
        row.size_bytes,
        row.notes,
    )


def _sum_of(cells: _Cells) -> bytes:
    digest = hashlib.blake2b(digest_size=_SUM_BYTES)
    for cell in cells:
        part = cell.to_bytes(_COUNT_BYTES, signed=True) if isinstance(cell, int) else cell
        digest.update(len(part).to_bytes(_COUNT_BYTES) + part)
    return digest.digest()


def _checked(found: tuple[*_Cells, bytes]) -> DirRow:
    cells: _Cells = found[:-1]
    try:
        is_whole = found[-1] == _sum_of(cells)
    except (TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        raise sqlite3.DatabaseError("the row of a directory does not fit its sum")
    return DirRow(
        path=cells[0],
        tree=ChunkId(cells[1]),
        set_hash=cells[2],
        record=cells[3],
        entries=cells[4],
        owners=cells[5],
        pins=cells[6],
        own=cells[7],
        files=cells[8],
        size_bytes=cells[9],
        notes=cells[10],
    )
