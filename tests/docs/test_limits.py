"""Every number of the format stands twice: on its page and in core/limits.py."""

import re
from pathlib import Path

from durarepo.core import limits

SPEC = Path(__file__).parents[2] / "spec"
FORMAT = (SPEC / "format.md").read_text("utf-8")
INGEST = (SPEC / "ingest.md").read_text("utf-8")
MIRROR = (SPEC / "mirror.md").read_text("utf-8")

NOT_OF_THE_FORMAT = {
    "KIB",
    "MIB",
    "FRAME_TARGET_BYTES",
    "LIVE_MANIFESTS_MIN",
    "PADDING_BYTES",
    "PADDING_SHARE",
    "PINS_WARN_COUNT",
    "QUIET_SECONDS",
    "READ_TRIES",
    "READ_WINDOW_BYTES",
    "REGISTRY_WARN_SECONDS",
    "RETENTION_DAYS",
    "REWRITE_LEAST_BYTES",
    "REWRITE_LIVE_SHARE",
    "REWRITE_SHARE",
    "SMALL_PACKS_MAX",
    "SMALL_PACKS_SPARE",
    "SMALL_PACK_BYTES",
    "STORE_MIN_OBJECT_BYTES",
    "TREE_MAX_DEPTH",
    "VERIFY_DAYS",
    "WEIGH_MANIFESTS",
    "WEIGH_SHARE",
    "WHOLE_FILE_MAX_BYTES",
}
"""What a writer chooses, or what follows from another limit; a reader never needs it."""

ELSEWHERE = {
    "SIZE_CLASSES": "| bytes | 32768 | 131072 | 393216 | 1048576 | 2621440 | 6291456 |",
    "PACK_MAX_BYTES": " 33554432 |",
    "KEY_BYTES": "the 32-byte key",
    "STANZA_BYTES": "= 1168 bytes",
    "STANZA_COUNTS": "n = 4 or 8",
    "NONCE_BYTES": "nonce of 12 zero bytes",
    "TAG_BYTES": "a tag of 16 bytes",
    "TRAILER_BYTES": "The last 36 bytes",
    "RECIPIENT_BYTES": "*recipient*, 1216 bytes",
    "SIGNER_PUBLIC_BYTES": "1984 bytes: Ed25519 public (32)",
    "ED25519_SIGNATURE_BYTES": "Ed25519",
    "MLDSA_SIGNATURE_BYTES": "ML-DSA-65",
    "TIME_MIN_SECONDS": "seconds",
    "TIME_MAX_SECONDS": "seconds",
}
"""Numbers of the format that stand in its text, and not in the table of section 12."""


def table() -> dict[str, float]:
    """Return the limits of section 12, and those of remotes."""
    sections = FORMAT.partition("\n## 12. Limits\n")[2] + MIRROR.partition("\n## 5. Limits\n")[2]
    return {
        name: float(value)
        for name, value in re.findall(r"^\| ([A-Z_0-9]+) \| ([\d.]+) \|$", sections, re.M)
    }


def test_the_table_of_limits_and_the_module_say_the_same() -> None:
    """A reader of another make takes its bounds from the page (format 12)."""
    stated = table()

    assert len(stated) > 20
    assert {name: getattr(limits, name, None) for name in stated} == stated


def test_every_limit_of_the_module_is_in_the_format_or_a_writer_s_choice() -> None:
    """A bound that no page names is one that another reader does not have."""
    names = {name for name in vars(limits) if name.isupper()}

    assert names == set(table()) | set(ELSEWHERE) | NOT_OF_THE_FORMAT


def test_numbers_in_the_text_of_the_format_are_those_of_the_module() -> None:
    """Where a number stands in a sentence, the sentence is looked for."""
    missing = [name for name, words in ELSEWHERE.items() if words not in FORMAT]

    assert missing == []
    row = FORMAT.partition("| bytes |")[2].splitlines()[0]
    assert list(map(int, re.findall(r"\d+", row))) == list(limits.SIZE_CLASSES)
    assert str(limits.MLDSA_SIGNATURE_BYTES) in INGEST
    assert f"{limits.ED25519_SIGNATURE_BYTES} bytes, 3309 bytes" in INGEST


def test_numbers_in_the_steps_of_ingest_are_those_of_the_module() -> None:
    """The two pages must not drift apart."""
    for words in (
        f"a size class, at most {limits.REGISTRY_MAX_BYTES}",
        f"a size class, at most {limits.ENVELOPE_MAX_BYTES}",
        f"expires is issued + {limits.MANIFEST_TTL_SECONDS}",
        f"issued at most {limits.ISSUED_AHEAD_SECONDS} s ahead",
        f"zstd within {limits.INDEX_MAX_BYTES} bytes",
        f"zstd within {limits.NESTED_MAX_BYTES} bytes",
        f"at most {limits.PATH_MAX_BYTES} bytes",
        f"depth at most {limits.CBOR_MAX_DEPTH}",
    ):
        assert words in INGEST, words
