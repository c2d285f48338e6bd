"""All that a store holds, decrypted: every frame of every pack, pinned or not, and every ledger.

Goes through the independent reader, so that what the code under test hides from itself still
shows. Start at `stored_plaintext`, and at `traces` for where a secret is searched.
"""

import base64
import hashlib
from typing import Any
from urllib.parse import quote

from tests.interop.minireader import Refused, open_index, restore
from tests.machines.stream import Stream


def stored_plaintext(stream: Stream) -> bytes:
    """Return the plaintext of every frame of every pack, and of every manifest's own part."""
    held: Any = stream.held()  # the independent reader has no types
    parts: list[bytes] = []
    for sequence in stream.statements():
        restore(
            stream.objects,
            stream.base / f"plain-{sequence}-{stream.restored}",
            held,
            stream.clock,
            sequence=sequence,
            archival=True,
        )
        stream.restored += 1
        parts.append(repr(held.open_nested(held.statement)).encode())
    for path in stream.object_files():
        name = bytes.fromhex(path.name)
        if name not in held.packs:
            try:
                held.packs[name] = (
                    1,
                    *open_index(path.read_bytes(), (name,), held.key(1, b"index")),  # type: ignore[no-untyped-call]  # as above
                )
            except Refused:
                continue  # a manifest or a registry
        frames = held.packs[name][3]
        parts += [held.read_frame(name, number) for number in range(len(frames))]
    return b"\n".join(parts)


def traces(secret: bytes) -> set[bytes]:
    """Return what must occur nowhere: a secret raw, in usual encodings, and hashed."""
    found = {secret, secret.hex().encode(), quote(secret).encode(), secret[::-1]}
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret)
        found.add(encoded[4 * (shift > 0) + 4 : -8])
    for name in ("sha256", "sha1", "md5", "blake2b"):
        digest = hashlib.new(name, secret).digest()
        found |= {digest, digest.hex().encode()}
    return {one for one in found if len(one) >= 8}
