"""An independent reader of the durarepo format, version 1, made from the specification alone.

With the locator, the owner's public key and an identity it restores a repository. It must not
import durarepo, shares no code with it and stays short, so small branches take one line.
Source: spec/format.md, spec/ingest.md (numbers in comments are its steps). Start at `restore`.
"""
# ruff: noqa: E401, E701, I001
import argparse, functools, hashlib, hmac, os, re, shutil, struct, sys, types
from collections import namedtuple
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any as V  # a decoded item or a function; what was checked is as its shape says
import zstandard
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric import ed25519, mldsa, mlkem, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Manifest = namedtuple("Manifest", "statement nested digest")
Pack = namedtuple("Pack", "header frames chunks")  # chunks: id to frame, offset, length, kind
Restored = namedtuple("Restored", "path type size value")  # value: SHA-256 of content or target
CLASSES = (32768, 131072, 393216, 1048576, 2621440, 6291456, 14680064, 33554432)
ZERO, STANZA, MIB8, TOP, AHEAD, ZEROS = bytes(32), 1168, 8388608, 2**64, 64, bytes(8388608)
SUITE = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
KEY_BYTES = {"signing": 64, "signer": 1984, "owner": 64, "owner-public": 1984, "identity": 32,
             "recipient": 1216, "naming": 32, "locator": 32}
P, Y8 = 2**255 - 19, 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
class Refused(Exception):  # noqa: N818
    """The input is refused; ``code`` is that of the failing step, of integrity if not given."""
    code = property(lambda self: ("" if "." in self.args[0] else "integrity.") + self.args[0])

def _need(*checks: V) -> None:  # condition, code, condition, code ...
    for good, code in zip(checks[::2], checks[1::2], strict=True):
        if not good: raise Refused(code)
def _try(code: str, action: V, *given: V, **named: V) -> V:
    try: return action(*given, **named)
    except (InvalidTag, InvalidSignature, ValueError, zstandard.ZstdError):
        raise Refused(code) from None
def _sha(data: bytes) -> bytes: return hashlib.sha256(data).digest()
def _mac(key: bytes, *parts: bytes) -> bytes: return hmac.digest(key, b"".join(parts), "sha256")
def _sub(key: bytes, label: bytes) -> bytes: return _mac(key, b"durarepo/1/", label, b"\1")
def _num(value: int, size: int) -> bytes: return value.to_bytes(size, "big")
def _short(value: bytes, size: int = 2) -> bytes: return _num(len(value), size) + value
def _same(one: bytes, two: bytes, code: str) -> None: _need(hmac.compare_digest(one, two), code)
def decode(data: bytes) -> V:
    """Return the one item that ``data`` encodes (ingest 1)."""
    value, end = _item(data, 0, 0)
    _need(end == len(data), "cbor-length")
    return value
def _item(data: bytes, at: int, depth: int) -> tuple[V, int]:
    major, number, at = _head(data, at)
    if major in (0, 1): return (number, -1 - number)[major], at
    if major == 7: return {20: False, 21: True, 22: None}[number], at
    _need(number << (major == 5) <= len(data) - at, "cbor-length")
    raw, keys, items = data[at:at + number], b"", []
    if major in (2, 3): return raw if major == 2 else _try("cbor-text", raw.decode), at + number
    _need(depth < 16, "cbor-depth")
    for _ in range(number):
        if major == 5:
            key, at = data[at:at + 1], at + 1
            _need(key, "cbor-length", keys[-1:] < key < b"\x18", "cbor-keys")
            keys += key
        value, at = _item(data, at, depth + 1)
        items.append(value)
    return (dict(zip(keys, items, strict=True)) if major == 5 else items), at
def _head(data: bytes, at: int) -> tuple[int, int, int]:
    _need(at < len(data), "cbor-length")
    major, number, at = data[at] >> 5, data[at] & 31, at + 1
    if major < 7 and number > 23:
        _need(number < 28, "cbor-form")
        size, least = 1 << number - 24, (24, 2**8, 2**16, 2**32)[number - 24]
        number, at = int.from_bytes(data[at:at + size], "big"), at + size
        _need(at <= len(data), "cbor-length", number >= least, "cbor-form")
    good = number in (20, 21, 22) if major == 7 else major != 6 and (major != 1 or number < 2**63)
    _need(good, "cbor-type")
    return major, number, at

def _fits(v: V, shape: V) -> bool:  # noqa: PLR0911
    match shape:
        case range(): return type(v) is int and v in shape
        case int(): return type(v) is bytes and len(v) == shape
        case slice(): return type(v) is bytes and shape.start <= len(v) <= shape.stop
        case tuple(): return any(_fits(v, one) for one in shape)  # alternatives
        case list(): return type(v) is list and len(v) == len(shape) and all(map(_fits, v, shape))
        case dict():  # a key that is not in every map is written ~key
            return type(v) is dict and {key for key in shape if key >= 0} <= v.keys() and all(
                _fits(v[key], shape.get(key, shape.get(~key, ()))) for key in v)
        case type(): return type(v) is shape
        case _: return bool(shape(v)) if shape else v is None
def _rows(shape: V, low: int = 0, high: int = TOP, by: V = None) -> V:  # an array of such items
    return lambda v: (type(v) is list and low <= len(v) <= high and all(_fits(r, shape) for r in v)
                      and (by is None or _rising(map(by, v))))
def _rising(rows: V) -> bool: return all(map(lambda a, b: a < b, rows := [*rows], rows[1:]))
def _runs(v: V) -> bool:
    ids = v[1][1::2] if _fits(v, [range(4), list]) else []
    return (0 < len(ids) * 2 == len(v[1]) and all(_fits(n, POS) for n in v[1][::2])
            and all(_fits(name, 32) or (name is None and v[0] == 0) for name in ids)
            and not any(map(lambda one, two: one is two is None, ids, ids[1:])))
def _named(v: bytes) -> bool:
    return 0 < len(v) < 256 and v not in (b".", b"..") and not {0, 47} & {*v}
def _normal(v: V) -> bool:
    good = _fits(v, slice(1, 4096)) and v[0] == 47
    return good and (v == b"/" or all(map(_named, v[1:].split(b"/"))))
def _text(high: int) -> V: return lambda v: _fits(v, slice(1, high)) and b"\0" not in v
NAT, POS, U32, INT = range(TOP), range(1, TOP), range(2**32), range(-2**63, TOP)
NAME, WHEN, SPAN = slice(1, 255), [INT, range(10**9)], {0: NAT, 1: NAT}
ENTRY = {~0: bytes, 1: range(7), 2: range(4096), 3: WHEN, 4: U32, 5: U32, ~6: NAME, ~7: NAME,
         ~8: WHEN, ~9: NAT, ~10: 32, ~11: list, ~12: 32, ~13: _text(4095), ~14: [U32, U32],
         ~15: _rows([_text(255), (slice(0, 4096), list)], 1, 1024, lambda row: row[0]),
         ~16: NAT, ~17: range(1, 6), ~18: POS, ~19: _rows(str, 1)}
OWN: V = ({9}, {12}, {13}, set(), set(), {14}, {14})  # keys of one type only; files may have more
EPOCH = {0: POS, 1: POS, 2: 32, 3: _rows([1984, range(4)]), 4: _rows(1216, 1, 8), 5: _rows(1216),
         6: range(4, 9, 4), 7: bytes, 8: (bytes, None), 9: _rows([32, NAT, 32])}
STREAM = {0: str, 1: str, 2: bool, 3: _rows(EPOCH, 1), 4: NAT, 5: [NAT] * 3, 6: bool, 7: (32, None)}
def _stream(row: V) -> bool:
    first = [epoch[1] for epoch in row[3]] if _fits(row, STREAM) else [0]
    return (first[0] == 1 and sorted(first) == first and row[3][0][2] == ZERO
            and [epoch[0] for epoch in row[3]] == [*range(1, len(first) + 1)]
            and all(len(e[4]) + len(e[5]) <= e[6] and bool(e[5]) == bool(e[8]) for e in row[3])
            and len(row[0].encode()) < 256 > len(row[1].encode()))
def _term(v: V) -> bool: return _fits(v, SPAN) and 0 < v[1] - v[0] <= 34560000
REGISTRY = {0: POS, 1: _term, 2: 1984, 3: _rows(_stream, by=lambda row: row[0].encode())}
MANIFEST = {0: {0: str, 1: U32, 2: str, 3: bool, 4: 32}, 1: {0: POS, 1: 32, 2: 32, 3: 32, 4: POS},
            2: SPAN, 3: range(4), 4: bool, 5: dict.fromkeys(range(7), NAT), 6: bool, 7: (32, None),
            8: _rows(POS, by=int), 9: 32, 10: bool, 11: _rows([32, NAT, 32, NAT]),
            12: _rows([32, _rows(32)]), 13: _rows(32), 14: NAT, 15: bytes}
FACTS, LEDGERS = _rows([str, (str, INT)]), _rows([range(4), (bytes, str), str, str, NAT])
PART = {0: str, 1: slice(0, 65535), 2: 32, 3: range(6), 4: _rows([str, NAT]), 5: FACTS}
NESTED = {0: _rows([_normal, dict], by=lambda row: row[0]), 1: _rows(PART), 2: 32, 4: bytes,
          3: (slice(0, 65536), _runs), 5: _rows([str, str]), 6: FACTS, 7: str}

def parse_key(text: str, kind: str) -> bytes:
    """Return the bytes of the one key line in ``text`` (ingest 2)."""
    lines = "".join(line for line in text.splitlines(keepends=True) if line[0] != "#")
    found = re.fullmatch(r"(durarepo-([a-z-]+)-1 )((?:[0-9a-f]{2})+) ([0-9a-f]{8})\n", lines)
    if not found or found[2] != kind: raise Refused("keys.malformed")
    key = bytes.fromhex(found[3])
    check = _sha(found[1].encode() + key)[:4].hex()
    _need(len(key) == KEY_BYTES[kind] and check == found[4], "keys.malformed")
    return _point(key) if len(key) == 1984 else key
def _point(public: bytes) -> bytes:  # 2.2
    y = int.from_bytes(public[:32], "little") & (1 << 255) - 1
    square = (y * y - 1) * (-121665 * pow(121666, -1, P) * y * y + 1)
    good = y < P and y not in (0, 1, P - 1, Y8, P - Y8) and pow(square, (P - 1) // 2, P) == 1
    _need(good, "trust.weak-key")
    return public
def _gcm(key: bytes, sealed: bytes, code: str) -> V:
    return _try(code, AESGCM(key).decrypt, sealed[:12], sealed[12:], None)
@functools.lru_cache(8)
def _private(seed: bytes) -> hpke.MLKEM768X25519PrivateKey:
    one, two = mlkem.MLKEM768PrivateKey.from_seed_bytes, x25519.X25519PrivateKey.from_private_bytes
    wide = hashlib.shake_256(seed).digest(96)
    return hpke.MLKEM768X25519PrivateKey(one(wide[:64]), two(wide[64:]))
def _unwrap(head: bytes, info: bytes, identities: list[bytes]) -> bytes:
    for seed in identities:
        for at in range(0, len(head) - 32, STANZA):
            with suppress(InvalidTag, ValueError):
                key = SUITE.decrypt(head[at:at + STANZA], _private(seed), info)
                _same(_mac(key, b"commit", info), head[-32:], "commitment")
                return key
    raise Refused("stanza")
def _inflate(data: bytes, limit: int, code: str) -> V:
    about = _try(code, zstandard.get_frame_parameters, data)
    _need(data[:4] == b"\x28\xb5\x2f\xfd" and about.content_size <= limit
          and about.window_size <= MIB8 and not about.dict_id, code)
    return _try(code, zstandard.ZstdDecompressor().decompress, data, allow_extra_data=False)
def _unpad(plain: bytes, code: str) -> bytes:
    end = 4 + int.from_bytes(plain[:4], "big")
    _need(4 <= len(plain) >= end and not any(plain[end:]), code)
    return plain[4:end]
def _document(plain: bytes, kind: str) -> tuple[V, V]:  # 3.5 to 3.7, 4.7 to 4.9
    document = decode(_unpad(plain, "padding"))
    _need(_fits(document, [str, bytes, 64, 3309]), "document")
    _need(document[0] == kind, "trust.type")
    return document, decode(document[1])
def _verify(document: V, public: bytes) -> None:  # 3.9, 4.11
    name, inner = document[0].encode(), document[1]
    message = b"DSSEv1 %d %s %d %s" % (len(name), name, len(inner), inner)
    key, wide = ed25519.Ed25519PublicKey.from_public_bytes, mldsa.MLDSA65PublicKey.from_public_bytes
    _try("trust.signature", key(_point(public)[:32]).verify, document[2], message)
    _try("trust.signature", wide(public[32:]).verify, document[3], message, name)

class Held(types.SimpleNamespace):
    """Given: stream, locator, owner_digest, identities, perhaps the next line; found: the rest."""
    highest, anchor, high_water, clock = 1, (0, ZERO), (0, ZERO), 0  # highest: registry version
    def __init__(self, **given: V) -> None:  # naming keys by epoch; digests, envelopes by sequence
        found: V = {"registry": {}, "naming": {}, "chain": {}, "later": lambda _: []}
        super().__init__(**found | given)
    def about(self, registry: V = None) -> V:  # the stream's map
        found = [row for row in (registry or self.registry)[3] if row[0] == self.stream]
        _need(found, "trust.stream")
        return found[0]
    def epoch(self, sequence: int) -> V:  # the epoch it lies in
        return [row for row in self.about()[3] if row[1] <= sequence or row[0] == 1][-1]
    def info(self, kind: int, epoch: int, salt: bytes) -> bytes:
        part = _num(epoch, 4) + _short(self.about()[1].encode(), 1) + salt
        return b"durarepo/1" + _num(kind, 1) + _short(self.stream.encode(), 1) + part
    def unbox(self, box: bytes, kind: int, epoch: V, more: bytes = b"") -> V:
        end, info = 64 + epoch[6] * STANZA, self.info(kind, epoch[0], box[:32]) + more
        return _gcm(_unwrap(box[32:end], info, self.identities), box[end:], "seal")
    def key(self, epoch: V, label: bytes) -> bytes:  # a subkey of the naming key
        if epoch[0] not in self.naming: self.naming[epoch[0]] = self.unbox(epoch[7], 5, epoch)
        return _sub(self.naming[epoch[0]], label)

def open_registry(data: bytes, held: Held, version: int, now: int | None = None) -> V:
    """Return the statement of a registry (ingest 3); without ``now`` it may be an old one."""
    _need(len(data) in CLASSES[:4], "object-size", data[:1] == b"\1", "version")
    key, info = _mac(_sub(held.locator, b"registry-seal"), data[1:33]), bytes(6) + data[1:33]
    _same(_mac(key, b"commitdurarepo/1\4", info), data[33:65], "commitment")
    document, statement = _document(_gcm(key, data[65:], "seal"), "durarepo/1/registry")
    owner: V = statement.get(2) if isinstance(statement, dict) else None
    _need(isinstance(owner, bytes) and _sha(owner) == held.owner_digest, "trust.owner")
    _verify(document, owner)
    _need(_fits(statement, REGISTRY), "registry")
    _ = [_point(row[0]) for stream in statement[3] for epoch in stream[3] for row in epoch[3]]
    _need(statement[0] == version, "trust.registry-version")
    if now is not None:
        _need(version >= held.highest, "trust.registry-version", statement[1][0] <= now + 600,
              "fresh.ahead", now < statement[1][1], "fresh.registry-expired")
    return statement
def open_manifest(data: bytes, held: Held, sequence: int, now: int, *, archival: bool = False,
                  epoch: int = 0) -> Manifest:
    """Return a manifest to be restored (ingest 4); ``archival`` leaves out 4.22 and 4.28."""
    statement, row = _envelope(data, held, sequence, epoch), held.epoch(sequence)
    _place(statement, _sha(data), held, 0 if archival else held.high_water[0], held.about()[4])
    _times(statement, held, now, archival)
    pins, repairs, more = statement[11], statement[12], _num(sequence, 8) + statement[1][1]
    sets = [[pin[0] for pin in pins], [row[0] for row in repairs], statement[13]]
    _need(all(map(_rising, sets + [row[1] for row in repairs])) and max(map(len, sets)) < 65537
          and all(pin[1] < 8 and 0 < pin[3] <= statement[1][4] for pin in pins), "pins")
    try: nested = _inflate(held.unbox(statement[15], 3, row, more), MIB8, "nested")
    except Refused: raise Refused("nested") from None
    _need(_fits(nested := decode(nested), NESTED), "nested-form")
    _need(type(nested[3]) is list or _fits(decode(nested[3]), LEDGERS), "nested-form")
    told = [_short(part[0].encode()) + _short(part[1]) + part[2] for part in nested[1]]
    _need(_sha(b"".join(told)) == nested[2], "component-index")
    return Manifest(statement, nested, _sha(data))
def _envelope(data: bytes, held: Held, sequence: int, epoch: int = 0, known: V = None) -> V:
    row = held.about()[3][epoch - 1] if epoch else held.epoch(sequence)  # 4.1 to 4.19
    _need(len(data) in CLASSES[:6], "object-size", data[:1] == b"\1", "version")
    if row[0] in held.naming: _same(_mac(held.key(row, b"mark"), data[:-32]), data[-32:], "mark")
    head, info, about = data[:65 + row[6] * STANZA], held.info(2, row[0], data[1:33]), held.about()
    plain = _gcm(_unwrap(head[33:], info, held.identities), data[len(head):-32], "seal")
    document, statement = _document(plain, "durarepo/1/manifest")
    identity: V = statement.get(0) if isinstance(statement, dict) else None
    name: V = identity.get(4) if isinstance(identity, dict) else None
    signers = [signer for signer in row[3] if _sha(signer[0]) == name]
    _need(signers, "trust.unknown-signer")
    _verify(document, signers[0][0])
    _need(_fits(statement, MANIFEST), "statement")
    number, place = statement[1][0], [identity[key] for key in (0, 2, 3)]
    _need(statement[1][3] == _sha(head), "trust.header",
          place == [*about.values()][:3], "trust.stream",
          identity[1] == row[0] == held.epoch(number)[0], "trust.epoch",
          signers[0][1] & 1, "trust.role")
    _need(known or _good(held, name, number, _sha(data)), "fresh.revoked",
          statement[1][4] <= held.registry[0], "trust.registry-version",
          number == sequence, "trust.sequence")
    return statement
def _good(held: Held, signer: bytes, sequence: int, digest: bytes) -> bool:  # 4.17
    for _, last, wanted in [r for e in held.about()[3] for r in e[9] if r[0] == signer]:
        for number in range(last, sequence, -1):  # walk down from the last good envelope
            found = [data for data in held.later(number) if _sha(data) == wanted]
            below = _envelope(found[0], held, number, 0, "known")[1][1] if found else b""
            wanted = below  # noqa: PLW2901
        if last < sequence or wanted != digest: return False
    return True
def _place(statement: V, digest: bytes, held: Held, lowest: int = 0, floor: int = 0) -> None:
    (number, before, milestone, *_), row = statement[1].values(), held.epoch(statement[1][0])
    first = {1, *(epoch[1] for epoch in held.about()[3])}  # 4.21 to 4.25
    last = next((n for n in range(number - 1, 0, -1) if n % 64 == 0 or n in first), 0)
    below = held.chain.get(number - 1, b"" if number > 1 else ZERO)
    _need(digest == held.anchor[1] if number == held.anchor[0] else before == below, "trust.link",
          milestone == (held.chain.get(last, milestone) if last else ZERO), "trust.link",
          number != row[1] or before == row[2], "trust.link", number >= lowest, "trust.rollback",
          number != held.high_water[0] or digest == held.high_water[1], "trust.fork",
          number >= floor and statement[14] <= held.about()[4], "trust.floor",
          statement[2][1] == statement[2][0] + 86400, "trust.lifetime")
def _times(statement: V, held: Held, now: int, archival: V) -> None:  # 4.26 to 4.28
    _need(statement[2][0] <= now + 600, "fresh.ahead", now >= held.clock, "fresh.clock",
          archival or now < statement[2][1], "fresh.expired")
def _passing(found: list[bytes], check: V) -> list[V]:  # [digest, statement], lowest attempt first
    passed, failed = {}, [Refused("trust.registry-version")]
    for data in found:
        try: passed[_sha(data)] = check(data)
        except Refused as refused: failed.append(refused)
    if not passed: raise failed[:2][-1]
    return [*passed.items()]
def follow(held: Held, wanted: int = 0) -> int:
    """Verify the chain of ``held.later`` from the anchor up (4.20) and return the head."""
    head, number = 0, max(held.anchor[0], 1)
    while number <= max(head + AHEAD, held.high_water[0], wanted):
        if found := held.later(number):
            _need(number == max(head + 1, held.anchor[0]), "gap")
            passed = _passing(found, lambda data, n=number: _envelope(data, held, n))
            _place(passed[0][1], passed[0][0], held)
            _need(len(passed) == 1, "trust.fork")
            head, held.chain[number] = number, passed[0][0]
        number += 1
    _need(head >= held.high_water[0], "trust.rollback", head >= max(wanted, 1), "gap")
    return head

def open_index(data: V, pin: V, naming: bytes) -> Pack:
    """Return the checked index of a pack (ingest 5); without a pin, ``pin`` is only its name."""
    if data is None: raise Refused("pack-missing")
    size = len(data) == CLASSES[pin[1]] if pin[1:] else len(data) in CLASSES
    _need(size, "object-size", data[:1] == b"\1", "version")
    key = _mac(_sub(naming, b"index"), b"index", data[1:33])
    end = int.from_bytes(_gcm(key, data[-36:], "trailer"), "big")
    _need(65 + 4 * STANZA < end < len(data) - 36, "trailer")
    if pin[1:]: _need(_sha(data[end:-36]) == pin[2], "index-digest")
    else: _need(_sha(data) == pin[0], "object-name")
    packed = _unpad(_gcm(key, data[end:-36], "index-seal"), "index-seal")
    raw = _inflate(packed, 4194304, "index-seal")
    size, f, c = struct.unpack(">III", raw[32:44].ljust(12, b"\0"))
    _need(0 < f < 65537 and c and len(raw) == 44 + 45 * f + 37 * c, "index-form")
    feed = iter(struct.unpack(f">{3 * f}I{f}B{'32s' * f}{c}I{c}B{'32s' * c}", raw[44:]))
    stored, plain, counts, packing, digests = ([next(feed) for _ in range(f)] for _ in range(5))
    lengths, kinds, ids = ([next(feed) for _ in range(c)] for _ in range(3))
    _need(size in (65 + 4 * STANZA, 65 + 8 * STANZA) and size + sum(stored) == end and min(counts)
          and sum(counts) == c and max(packing) < 2 and max(kinds) < 4 and max(plain) <= MIB8
          and 0 < min(lengths) <= max(lengths) <= MIB8, "index-form")
    frames, chunks, at, i = [], {}, size, 0
    for n in range(f):
        frames.append((at, at + stored[n], plain[n], packing[n], digests[n], ids[i:i + counts[n]]))
        at, within = at + stored[n], 0
        for name, length, kind in [*zip(ids, lengths, kinds, strict=True)][i:i + counts[n]]:
            chunks[name], within, i = (n, within, length, kind), within + length, i + 1
        _need(within == plain[n], "index-form")
    return Pack((size, raw[:32]), frames, chunks)
def read_frame(data: bytes, pack: Pack, number: int, epoch: int, held: Held) -> bytes:
    """Return the plaintext of a frame (ingest 6.3 to 6.7)."""
    start, end, size, packing, digest, ids = pack.frames[number]
    head, sealed = data[:pack.header[0]], data[start:end]
    _need(_sha(head) == pack.header[1], "pack-header", _sha(sealed) == digest, "frame-digest")
    key = _unwrap(head[33:], held.info(1, epoch, head[1:33]), held.identities)
    key = _mac(key, b"frame", _num(number, 4), _sha(b"".join(ids)), _num(packing, 1))
    plain: bytes = _gcm(key, bytes(12) + sealed, "frame-seal")
    plain = _inflate(plain, size, "frame-inflate") if packing else plain
    _need(len(plain) == size, "frame-inflate")
    return plain
def read_chunk(frame: bytes, pack: Pack, name: bytes, subkey: bytes) -> bytes:
    """Return a chunk of an opened frame (ingest 6.8); ``subkey`` is that of "chunk-id"."""
    _, at, length, kind = pack.chunks[name]
    told = _num(kind, 1) + _num(length, 8) + _sha(frame[at:at + length])
    _same(_mac(subkey, told), name, "chunk-id")
    return frame[at:at + length]

class Checkout:
    """Restores below the folder ``root``, a descriptor; ``load`` maps an id to kind, plaintext."""
    def __init__(self, root: int, load: V, subkeys: V) -> None:
        state: V = root, load, subkeys, {}, {}
        self.root, self.load, self.subkeys, self.done, self.links = state
        sys.setrecursionlimit(max(20000, sys.getrecursionlimit()))
    def chunk(self, name: bytes, kind: int, length: V = None) -> bytes:
        found, plain = self.load(name)
        good = found == kind and length in (None, len(plain))
        _need(good, "tree-form" if kind == 2 else "content")
        return bytes(plain)
    def pieces(self, content: V, total: V = None, kind: int = 0, depth: V = None) -> V:
        good = _runs(content) and depth in (None, content[0])
        _need(good and total in (None, sum(content[1][::2])), "content")
        for length, name in zip(content[1][::2], content[1][1::2], strict=True):
            if content[0]:
                below = decode(self.chunk(name, 1))
                yield from self.pieces(below, length, kind, content[0] - 1)
            elif name: yield self.chunk(name, kind, length)
            else: yield from (memoryview(ZEROS[:length - n]) for n in range(0, length, MIB8))
    def single(self, told: bytes) -> V:  # the id of a file's one chunk
        names = [_mac(key, told) for key in self.subkeys]
        for name in names[:-1]:
            with suppress(Refused): return self.load(name) and name
        return names[-1]
    def entries(self, tree: bytes) -> list[V]:
        value, leaf = decode(self.chunk(tree, 2)), [range(1), list]
        good, node = _fits(value, leaf), _fits(value, [range(1, 2), _rows([bytes, 32], 2)])
        leaves = [decode(self.chunk(row[1], 2)) for row in value[1]] if node else [value]
        _need((good or node) and all(_fits(each, leaf) for each in leaves), "tree-form")
        entries = [_entry(entry, {0}) for each in leaves for entry in each[1]]
        first = [each[1][0][0] if each[1] else b"" for each in leaves]
        good = not node or first == [row[0] for row in value[1]]
        _need(good and _rising(entry[0] for entry in entries), "tree-order")
        return entries
    @contextmanager
    def reach(self, path: bytes) -> V:  # a folder, made where missing; through no symbolic link
        at = os.dup(self.root)
        try:
            for part in filter(None, path.split(b"/")):
                with suppress(FileExistsError): os.mkdir(part, 0o700, dir_fd=at)
                at, above = os.open(part, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at), at
                os.close(above)
            yield at
        finally: os.close(at)
    def put(self, entry: V, path: bytes, above: V = ()) -> tuple[int, bytes]:
        """Restore an entry and what is below it; return its size and value in a set hash."""
        folder, _, name = path.rpartition(b"/")
        _ = [[*self.pieces(value)] for _, value in entry.get(15, []) if type(value) is list]
        size, value = entry.get(9, 0), entry.get(10, _sha(entry[13]) if entry[1] == 2 else ZERO)
        if entry[1] == 1: folder, value = path, self.fill(entry[12], path, above)
        with self.reach(folder) as at:
            if entry[1] == 0: self.file(entry, path, name, at)
            elif entry[1] == 2: os.symlink(entry[13], name, dir_fd=at)
            elif entry[1] == 3: os.mkfifo(name, 0o600, dir_fd=at)
        self.done[path] = entry, Restored(path, entry[1], size, value)
        return size, value
    def fill(self, tree: bytes, path: bytes, above: V) -> bytes:
        _need(tree not in above, "tree-form")
        entries, base, text = self.entries(tree), path.rstrip(b"/") + b"/", b""
        _need(all(len(base + each[0]) <= 4096 for each in entries), "path")
        for each in entries:
            size, value = self.put(each, base + each[0], (*above, tree))
            text += _short(each[0]) + _num(each[1], 1) + _num(size, 8) + value
        return _sha(text)
    def file(self, entry: V, path: bytes, name: bytes, at: int) -> None:
        same, told, size = {key: entry[key] for key in entry if key}, hashlib.sha256(), entry[9]
        twin, first = self.links.setdefault(entry.get(16, path), (same, path))
        if twin == same and first != path:
            with self.reach(first.rpartition(b"/")[0]) as there:
                return os.link(first.rpartition(b"/")[2], name, src_dir_fd=there, dst_dir_fd=at)
        flags, content = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, entry.get(11)
        if size and not content:
            content = [0, [size, self.single(b"\0" + _num(size, 8) + entry[10])]]
        try:
            with open(os.open(name, flags, 0o600, dir_fd=at), "wb") as out:
                for piece in self.pieces(content, size) if size else ():
                    told.update(piece)
                    _ = out.seek(len(piece), 1) if type(piece) is memoryview else out.write(piece)
                out.truncate()
            _need(told.digest() == entry.get(10, told.digest()), "file-hash")
        except BaseException:
            os.unlink(name, dir_fd=at)
            raise
    def finish(self, nested: V) -> None:
        """Restore all roots, check the components (7.8), set modes and times."""
        roots = b"".join(_short(path) + self.put(_entry(entry, set()), path)[1]
                         for path, entry in nested[0])
        if type(nested[3]) is list:
            _need(_fits(decode(b"".join(self.pieces(nested[3], None, 3))), LEDGERS), "nested-form")
        for kind, name, told, *_ in map(dict.values, nested[1]):
            found = {"files": _sha(roots), "sqlite": self.done.get(name[7:], (0, (b"",)))[1][-1]}
            _need(found.get(kind, told) == told, "component")
        for path, (entry, _) in sorted(self.done.items(), reverse=True):  # the deepest first
            when = max(-2**31, min(entry[3][0], 2**33)) * 10**9 + entry[3][1]
            folder, _, name = path.rpartition(b"/")
            with self.reach(folder) as at:
                if entry[1] in (0, 1, 3): os.chmod(name or b".", entry[2] & 0o1777, dir_fd=at)
                if entry[1] < 4:
                    os.utime(name or b".", ns=(when, when), dir_fd=at, follow_symlinks=False)
def _entry(entry: V, name: set[int]) -> V:  # 7.2, 7.3
    _need(_fits(entry, ENTRY) and entry.keys() & {0} == name, "entry")
    own, full = entry.keys() & {9, 10, 11, 12, 13, 14}, bool(entry.get(9))
    want = OWN[entry[1]] | ({10} if full else set())
    _need(want <= own <= want | ({11} if full else set()), "entry")
    _need(not name or _named(entry[0]), "name")
    return entry

class _Objects:
    def __init__(self, folder: Path, held: Held) -> None:
        state: V = folder, held, {}, {}
        self.folder, self.held, self.packs, self.where = state
        self.frame = functools.lru_cache(4)(lambda place, number: read_frame(
            self.get(place), self.packs[place][0], number, self.packs[place][1][0], held))
    def get(self, name: str) -> V:
        with suppress(FileNotFoundError), (self.folder / name[:2] / name).open("rb") as source:
            return source.read(CLASSES[-1] + 1)
    def slot(self, key: bytes, *place: bytes) -> list[bytes]:
        found = [self.get(_mac(key, *place, _num(attempt, 1)).hex()) for attempt in range(8)]
        return [data for data in found if data is not None]
    def registries(self, version: int) -> list[bytes]:
        key = _sub(self.held.locator, b"registry-slot")
        return self.slot(key, b"\3", bytes(4), _num(version, 8))
    def envelopes(self, number: int) -> list[bytes]:
        epoch = self.held.epoch(number)
        return self.slot(self.held.key(epoch, b"slot"), b"\1", _num(epoch[0], 4), _num(number, 8))
    def index(self, pin: V) -> None:
        old = _passing(self.registries(pin[3]), lambda data: open_registry(data, self.held, pin[3]))
        epoch, place = self.held.about(old[0][1])[3][-1], pin[0].hex()
        key = self.held.key(epoch, b"slot")
        slots = [_mac(key, b"\4", pin[0], _num(n, 1)).hex() for n in range(8)]
        place = next((name for name in [place, *slots] if self.get(name) is not None), place)
        self.packs[place] = open_index(self.get(place), pin, self.held.naming[epoch[0]]), epoch
        self.where |= dict.fromkeys(self.packs[place][0].chunks, place)
    def open(self, statement: V) -> None:
        gone = {*statement[13], *(row[0] for row in statement[12])}
        for pin in [pin for pin in statement[11] if pin[0] not in gone]: self.index(pin)
    def load(self, name: bytes) -> tuple[int, bytes]:
        _need(name in self.where, "chunk-missing")
        pack, epoch = self.packs[place := self.where[name]]
        frame = self.frame(place, pack.chunks[name][0])
        plain = read_chunk(frame, pack, name, self.held.key(epoch, b"chunk-id"))
        return pack.chunks[name][3], plain

def restore(objects: Path, destination: Path, held: Held, now: V, *, sequence: int = 0,
            archival: bool = False) -> list[Restored]:
    """Restore the head or ``sequence``; ``now`` is a number or is asked for one at each step."""
    live = now if callable(now) else lambda: now
    store, version = _Objects(objects, held), held.highest
    while store.registries(version + 1): version += 1
    found = store.registries(version)
    newest = _passing(found, lambda data: open_registry(data, held, version, live()))
    held.registry, held.later = newest[0][1], store.envelopes
    sequence = sequence or follow(held)
    if sequence not in held.chain: follow(held, sequence)
    data = {_sha(data): data for data in store.envelopes(sequence)}[held.chain[sequence]]
    statement, nested, _ = open_manifest(data, held, sequence, live(), archival=archival)
    store.open(statement)
    _times(statement, held, live(), archival)  # 6.1
    keys = [_sub(held.naming[number], b"chunk-id") for number in sorted(held.naming, reverse=True)]
    scratch = destination.with_name(destination.name + ".partial")
    scratch.mkdir(0o700)
    root = os.open(scratch, os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        checkout = Checkout(root, store.load, keys)
        checkout.finish(nested)
        _times(statement, held, live(), archival)  # 7.9
        scratch.rename(destination)
    except BaseException:
        shutil.rmtree(scratch)
        raise
    finally: os.close(root)
    return [restored for _, restored in checkout.done.values()]

def main() -> None:
    """Read the command line and restore."""
    parser = argparse.ArgumentParser(description="Restore a durarepo repository.")
    for name in ("objects", "destination"): parser.add_argument(name, type=Path)
    for name in ("locator", "owner", "identity", "stream", "now"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--archival", action="store_true")
    given: V = parser.parse_args()
    kinds = {"locator": given.locator, "owner-public": given.owner, "identity": given.identity}
    locator, owner, seed = (parse_key(Path(path).read_text(), kind) for kind, path in kinds.items())
    held = Held(stream=given.stream, locator=locator, owner_digest=_sha(owner), identities=[seed])
    paths, now = (given.objects, given.destination), int(given.now)
    for row in restore(*paths, held, now, archival=given.archival):
        sys.stdout.write(f"{row.value.hex()} {row.size} {os.fsdecode(row.path)!r}\n")
if __name__ == "__main__": main()
