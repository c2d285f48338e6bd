"""The omission ledger of a manifest as lines, wherever it stands.

Source: spec/format.md 7.3. Start at `read_ledger`.
"""

from durarepo.core.errors import IntegrityError
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import LedgerLine, Nested, parse_ledger
from durarepo.repository.reader import ChunkReader
from durarepo.repository.trees import read_content

LEDGER_MAX_BYTES = 8 * 1024 * 1024
"""The longest ledger that is read (format 7.3)."""


def read_ledger(reader: ChunkReader, nested: Nested) -> list[LedgerLine]:
    """Return what a manifest says was left out, and by which rule.

    Raises:
        IntegrityError: ``nested-form`` where the ledger is none, or why it cannot be read.
    """
    ledger = nested.ledger
    if not isinstance(ledger, bytes):
        try:
            ledger = read_content(reader, ledger, kind=ChunkKind.LEDGER, most=LEDGER_MAX_BYTES)
        except IntegrityError as error:
            raise IntegrityError(
                error.code.partition(".")[2], f"ledger: {error.message}", hint=error.hint
            ) from error
    return parse_ledger(ledger)
