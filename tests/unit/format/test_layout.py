"""Size classes, slots and what seals are bound to."""

from itertools import product

import pytest

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import ENVELOPE_MAX_BYTES, PACK_MAX_BYTES, SIZE_CLASSES
from durarepo.core.names import ObjectName
from durarepo.format.layout import (
    ChunkKind,
    Compartment,
    Part,
    Seal,
    check_object_size,
    chunk_id_input,
    class_number,
    fitting_class,
    manifest_slot_input,
    object_name,
    pack_slot_input,
    registry_slot_input,
    seal_info,
)


def test_seals_and_parts_have_the_numbers_of_the_specification() -> None:
    """A number is in every object that was ever written, and in no two meanings (format 3.2)."""
    assert [one.name for one in sorted(Seal)] == [
        *("PACK", "ENVELOPE", "NESTED", "REGISTRY", "NAMING_KEY", "SLOT_KEY", "KEYS_FILE"),
        *("CARD", "EVIDENCE", "CHALLENGE"),
    ]
    assert sorted(Seal) == list(range(1, 11))
    assert [one.name for one in sorted(Part)] == [
        *("ENVELOPE", "NESTED", "REGISTRY", "INDEX", "TRAILER", "SEALED_KEY", "CARD", "EVIDENCE")
    ]
    assert sorted(Part) == list(range(1, 9))


def test_no_two_places_share_what_a_seal_is_bound_to() -> None:
    """Stream 'ab' in 'c' and stream 'a' in 'bc' must not be able to swap their packs."""
    texts = ("", "a", "ab", "b", "bc", "c")
    infos = [
        seal_info(kind, Compartment(stream=one, epoch=epoch, compartment=two), bytes(32), extra)
        for kind, one, two, epoch, extra in product(
            (Seal.PACK, Seal.NESTED), texts, texts, (0, 1, 256), (b"", b"x")
        )
    ]

    assert len(set(infos)) == len(infos)


def test_the_info_of_a_seal_is_as_the_specification_says() -> None:
    """Another implementation builds it from the page alone (format 3.3)."""
    place = Compartment(stream="notes", epoch=2, compartment="main")

    assert seal_info(Seal.NESTED, place, b"s" * 32, b"more") == (
        b"durarepo/1" + b"\x03" + b"\x05notes" + b"\0\0\0\x02" + b"\x04main" + b"s" * 32 + b"more"
    )


def test_slots_and_ids_are_hashed_from_what_the_specification_says() -> None:
    """A reader of another make finds nothing if one byte differs (format 4 and 9)."""
    assert manifest_slot_input(1, 2, 3) == bytes.fromhex("01 00000001 0000000000000002 03")
    assert pack_slot_input(ObjectName("ab" * 32), 3) == b"\x04" + b"\xab" * 32 + b"\x03"
    assert registry_slot_input(2, 1) == bytes.fromhex("03 00000000 0000000000000002 01")
    assert chunk_id_input(ChunkKind.TREE, 5, b"d" * 32) == b"\x02" + (5).to_bytes(8) + b"d" * 32
    assert object_name(b"\xab" * 32) == "ab" * 32


def test_an_object_takes_the_smallest_class_that_holds_it() -> None:
    """A larger one would cost space, a smaller one does not hold it."""
    for size, below in zip(SIZE_CLASSES, (0, *SIZE_CLASSES), strict=False):
        assert fitting_class(size, most=PACK_MAX_BYTES) == size
        assert fitting_class(below + 1, most=PACK_MAX_BYTES) == size
    assert [class_number(size) for size in SIZE_CLASSES] == list(range(8))


def test_what_no_class_holds_is_a_mistake_of_the_caller() -> None:
    """Readers refuse an object of any other size."""
    with pytest.raises(ValueError, match="largest"):
        fitting_class(PACK_MAX_BYTES + 1, most=PACK_MAX_BYTES)
    with pytest.raises(ValueError, match="largest"):
        fitting_class(ENVELOPE_MAX_BYTES + 1, most=ENVELOPE_MAX_BYTES)


@pytest.mark.parametrize("length", [0, 1, 32_767, 32_769, 14_680_064, 2**40])
def test_an_object_of_another_size_is_refused(length: int) -> None:
    """Sizes are looked at before anything is read (ingest 3.1, 4.1)."""
    with pytest.raises(IntegrityError) as caught:
        check_object_size(length, most=ENVELOPE_MAX_BYTES)

    assert caught.value.code == "integrity.object-size"
