"""Paths of a ledger that hold a secret, and roots that are no part of the files (format 7.3)."""

from durarepo.format.canonical import decode
from durarepo.format.manifest import LedgerLine, OmissionClass, encode_ledger, parse_ledger
from durarepo.format.tree import SetHash

LINE = LedgerLine(kind=OmissionClass.EXCLUSION, path=b"/home/x", rule="r", stage="walk")
KEYED = LedgerLine(kind=OmissionClass.REDACTION, path=b"k3y", rule="r", stage="s", is_keyed=True)


def test_a_keyed_short_id_is_stored_as_text_and_a_path_as_bytes() -> None:
    """A short id that is taken for a path would be looked for on the disk, and never found."""
    encoded = encode_ledger([LINE, KEYED])

    assert decode(encoded) == [[0, b"/home/x", "r", "walk", 1], [2, "k3y", "r", "s", 1]]
    assert parse_ledger(encoded) == [LINE, KEYED]


def test_roots_of_other_components_do_not_count_among_the_files() -> None:
    """They have hashes of their own; a reader that counts them twice refuses a good restore."""
    files, more, near = SetHash(), SetHash(), SetHash()
    for sets in (files, more, near):
        sets.add_root(b"/home", bytes(32))
    more.add_root(b"/.durarepo/components/git", b"g" * 32)
    near.add_root(b"/.durarepo/components-of-mine", b"g" * 32)

    assert more.digest() == files.digest()
    assert near.digest() != files.digest()
