"""Generators of the test vectors: one function a vector, with fixed keys written down here.

Run `python -m tests.vectorgen` to write the files that are missing, with `--all` all of them.
Start at `catalogue.py`; the vectors stand in the modules named after their kind.
"""

from tests.vectorgen import cards, cbor, chain, keytext, manifest, pack, registry, repository, tree
from tests.vectorgen.catalogue import GENERATORS

__all__ = [
    "GENERATORS", "cards", "cbor", "chain", "keytext", "manifest", "pack", "registry",
    "repository", "tree",
]  # fmt: skip
