"""What a partial manifest takes over from the last complete one, so that it drops nothing.

Whatever the run did not reach any more is listed as it was kept, marked with the number of the
manifest that it was kept in. What cannot be taken over whole ends the run without a manifest.
Source: spec/format.md 6.3 (since), spec/cli.md (exit code 50). Start at `LastComplete`.
"""

from durarepo.core.entries import Entry
from durarepo.core.errors import RunError
from durarepo.format.tree import encode_entry, read_entry
from durarepo.local.catalog import Catalog
from durarepo.repository.chunks import ChunkSink, decode_owners
from durarepo.repository.listing import NEVER_EQUAL, Line
from durarepo.repository.tally import Tally, decode_notes


class LastComplete:
    """The last complete manifest as the catalogue has it."""

    def __init__(self, catalog: Catalog, sink: ChunkSink, *, tally: Tally, since: int) -> None:
        """Prepare.

        Args:
            catalog: holds the directories of that manifest.
            sink: knows which packs still count.
            tally: counts what is taken over.
            since: number of that manifest.
        """
        self._catalog = catalog
        self._sink = sink
        self._tally = tally
        self._since = since

    def take_line(self, line: Line) -> tuple[Line, Entry]:
        """Return a line, and its entry, as they stand in a partial manifest.

        Raises:
            RunError: ``budget``: a pack that it needs is gone.
        """
        if not self._sink.are_there(line.owners):
            raise _not_whole()
        entry = read_entry(line.entry)
        entry = entry._replace(since=entry.since or self._since)
        return Line(line.name, NEVER_EQUAL, encode_entry(entry), line.owners), entry

    def take_folder(self, path: bytes, entry: Entry, *, file_system: bytes) -> bytes | None:
        """Count all that lies in and below a directory; return its set hash.

        Returns:
            None where nothing is known below it: it could not be read, and is empty.

        Raises:
            RunError: ``budget``: it is not there as the manifest had it.
        """
        set_hash: bytes | None = None
        for row in self._catalog.iter_dirs(path):
            owners = decode_owners(row.pins)
            if not self._sink.are_there(owners) or (row.path == path and row.tree != entry.tree):
                raise _not_whole()
            self._tally.files += row.files
            self._tally.dirs += 1
            self._tally.bytes += row.size_bytes
            self._tally.owners.update(owners)
            self._tally.add_notes(decode_notes(row.notes), file_system)
            if row.path == path:
                set_hash = row.set_hash
        return set_hash


def _not_whole() -> RunError:
    return RunError(
        "budget",
        "the time budget is spent, and what was kept before is not known whole",
        hint="run the command again without a budget",
    )
