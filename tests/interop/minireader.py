"""A reader made from the specification alone; numbers are steps of ingest. Start at `restore`."""

# mypy: ignore-errors
# fmt: off
# ruff: noqa: B904, B905, C901, D103, E401, E701, I001, PLR0911, RET503, SIM115, T201
import functools, hashlib, hmac, os, pathlib, re, shutil, struct, sys
from itertools import accumulate, count, pairwise, product, takewhile
import zstandard
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric import ed25519, mldsa, mlkem, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
CLASSES = (32768, 131072, 393216, 1048576, 2621440, 6291456, 14680064, 33554432)
ZERO, STANZA, MIB8, LATE = bytes(32), 1168, 8388608, "trust.registry-version"
SUITE = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
P, Y8 = 2**255 - 19, 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
class Refused(Exception):  # noqa: N818 - ``code`` is that of the failing step
    code = property(lambda self: ("" if "." in self.args[0] else "integrity.") + self.args[0])
def _need(*checks):  # condition, code, condition, code ...
    for code in [c for good, c in zip(checks[::2], checks[1::2]) if not good]: raise Refused(code)
def _try(code, action, *given, **named):
    try: return action(*given, **named)
    except (InvalidTag, InvalidSignature, ValueError, zstandard.ZstdError): raise Refused(code)
def _sha(data: bytes) -> bytes: return hashlib.sha256(data).digest()
def _mac(key, *parts): return hmac.digest(key, b"".join(parts), "sha256")
def _sub(key, label): return _mac(key, b"durarepo/1/", label, b"\1")
def _short(value, size=2): return len(value).to_bytes(size) + value
def _gcm(key, data, code): return _try(code, AESGCM(key).decrypt, data[:12], data[12:], None)
def _rising(items): return all(map(lambda one, two: one < two, items, items[1:]))
def decode(data):  # 1
    value, end = _read(data, 0, 0)  # _read gives a value, and where it ends
    return _need(end == len(data), "cbor-length") or value
def _read(data, at, depth):
    _need(at < len(data), "cbor-length")
    major, number, at = data[at] >> 5, data[at] & 31, at + 1
    _need(major != 7 or number in (20, 21, 22), "cbor-type")
    if major == 7: return (False, True, None)[number - 20], at
    if number > 23:
        _need(number < 28, "cbor-form")
        size, least = 1 << number - 24, (24, 2**8, 2**16, 2**32)[number - 24]
        number, at = int.from_bytes(data[at:at + size]), at + size
        _need(at <= len(data), "cbor-length", number >= least, "cbor-form")
    _need(major != 6 and (major != 1 or number < 2**63), "cbor-type")
    if major < 2: return (number, -1 - number)[major], at
    _need(number << (major == 5) <= len(data) - at, "cbor-length")
    if major == 2: return data[at:at + number], at + number
    if major == 3: return _try("cbor-text", data[at:at + number].decode), at + number
    _need(depth < 16, "cbor-depth")
    inner, keys = [], b""
    for _ in range(number):
        if major == 5:
            _need(at < len(data), "cbor-length", keys[-1:] < data[at:at + 1] < b"\x18", "cbor-keys")
            keys, at = keys + data[at:at + 1], at + 1
        value, at = _read(data, at, depth + 1)
        inner.append(value)
    return (dict(zip(keys, inner)) if major == 5 else inner), at
def _fits(v, shape):  # shapes are numbers in a range, lengths, alternatives, rows, fields
    match shape:
        case re.Pattern(): return type(v) is type(shape.pattern) and bool(shape.fullmatch(v))
        case range(): return type(v) is int and v in shape
        case int(): return type(v) is bytes and len(v) == shape
        case slice(): return type(v) is bytes and shape.start <= len(v) <= shape.stop
        case tuple(): return any(_fits(v, one) for one in shape)
        case list(): return type(v) is list and len(v) == len(shape) and all(map(_fits, v, shape))
        case dict():  # a key that need not stand is written ~key
            return type(v) is dict and {key for key in shape if key >= 0} <= v.keys() and all(
                _fits(v[key], shape.get(key, shape.get(~key, ()))) for key in v)
        case type(): return type(v) is shape
        case _: return bool(shape(v)) if shape else v is None
def _rows(shape, low=0, high=2**32, by=None):  # an array; by: which item of a row ascends
    return lambda v: (type(v) is list and low <= len(v) <= high and all(_fits(r, shape) for r in v)
                      and (by is None or _rising([row[by] for row in v])))
def _content(v):  # format 6.4
    runs = [*map(list, zip(v[1][::2], v[1][1::2]))] if _fits(v, [range(4), list]) else []
    holes = [run[1] is None for run in runs]
    return (_fits(runs, _rows([SIZE, HASH], 1)) and 2 * len(runs) == len(v[1])
            and not (any(holes) and v[0]) and not any(map(min, holes, holes[1:])))
def _stream(v):
    return (_fits(v, STREAM) and v[3][0][1] == 1 and v[3][0][2] == ZERO and all(
        row[0] == number and len(row[4] + row[5]) <= row[6] and bool(row[5]) == (row[8] is not None)
        and len({key for key, _ in row[3]}) == len(row[3]) for number, row in enumerate(v[3], 1)))
def _roots(v):  # none within another
    paths = sorted(row[0].rstrip(b"/") + b"/" for row in v) if _fits(v, ROOTS) else [b"/", b"/"]
    return not any(map(bytes.startswith, paths[1:], paths))
NAMED, ID = re.compile(rb"(?!\.\.?\Z)[^/\0]{1,255}"), re.compile("[a-z0-9][a-z0-9-]{0,62}")
PATH = re.compile(rb"(?=.{1,4096}\Z)(?:/|(?:/(?!\.\.?(?:/|\Z))[^/\0]{1,255})+)", re.DOTALL)
NAT, POS, U32, SIZE, HASH = range(2**64), range(1, 2**64), range(2**32), range(1, 2**53), (32, None)
NAME, TIME, WHEN = slice(1, 255), range(2**62), [range(-2**62, 2**62), range(10**9)]
COMMON = {2: range(4096), 3: WHEN, 4: U32, 5: U32, ~6: NAME, ~7: NAME, ~8: WHEN, ~16: NAT, ~18: POS,
          ~15: _rows([re.compile(b"[^\0]{1,255}"), (slice(0, 4096), _content)], 1, 1024, 0)}
ROOT, OTHER = COMMON | {1: range(1, 2), 12: 32}, COMMON | {0: bytes}
FILE = OTHER | {1: range(1), ~17: range(1, 6), ~19: _rows(str, 1)}
ENTRY = (OTHER | ROOT, FILE | {9: range(1)}, FILE | {9: range(1, MIB8 + 1), 10: 32},
         FILE | {9: SIZE, 10: 32, 11: list}, OTHER | {1: range(5, 7), 14: [U32, U32]},
         OTHER | {1: range(3, 5)}, OTHER | {1: range(2, 3), 13: re.compile(b"[^\0]{1,4095}")})
EPOCH = {0: POS, 1: POS, 2: 32, 3: _rows([1984, range(1, 4)], 1, 64), 4: _rows(1216, 1, 8),
         5: _rows(1216), 6: range(4, 9, 4), 7: bytes, 8: (bytes, None), 9: _rows([32, NAT, 32])}
STREAM = {0: ID, 1: ID, 2: bool, 3: _rows(EPOCH, 1, by=1), 4: NAT, 5: [U32] * 3, 6: bool, 7: HASH}
REGISTRY = {0: POS, 1: lambda v: _fits(v, {0: TIME, 1: TIME}) and 0 < v[1] - v[0] <= 34560000,
            2: 1984, 3: _rows(_stream, 1, by=0)}
MANIFEST = {0: {0: ID, 1: range(1, 2**32), 2: ID, 3: bool, 4: 32}, 2: {0: TIME, 1: TIME}, 4: bool,
            1: {0: POS, 1: 32, 2: 32, 3: 32, 4: POS}, 3: range(4), 5: dict.fromkeys(range(7), NAT),
            6: bool, 7: HASH, 8: lambda v: _fits(v, _rows(NAT, 0, 65536)) and _rising(v),
            9: 32, 10: bool, 11: list, 12: list, 13: list, 14: NAT, 15: bytes}
def _packs(v): return _fits(v, _rows(32, 0, 65536)) and _rising(v)
PINS = [_rows([32, range(8), 32, POS], 0, 65536, 0), _rows([32, _packs], by=0), _packs]
FACTS, LEDGER = _rows([str, (str, NAT)]), _rows([range(4), (bytes, str), str, str, NAT])
PART = {0: str, 1: slice(0, 65535), 2: 32, 3: range(6), 4: _rows([str, NAT]), 5: FACTS}
ROOTS = _rows([PATH, lambda v: type(v) is dict and v.get(1) == 1], by=0)
NESTED = {0: _roots, 1: _rows(PART), 2: 32, 3: (slice(0, 65536), _content), 4: bytes,
          5: _rows([str, str]), 6: FACTS, 7: str}
def _point(public):  # 2.2
    y = int.from_bytes(public[:32], "little") & (1 << 255) - 1
    square = (y * y - 1) * (-121665 * pow(121666, -1, P) * y * y + 1)
    small = y in (0, 1, P - 1, Y8, P - Y8) or y >= P
    _need(not small and pow(square, (P - 1) // 2, P) == 1, "trust.weak-key")
    return public
def _private(seed):
    wide, curve = hashlib.shake_256(seed).digest(96), x25519.X25519PrivateKey.from_private_bytes
    lattice = mlkem.MLKEM768PrivateKey.from_seed_bytes(wide[:64])
    return hpke.MLKEM768X25519PrivateKey(lattice, curve(wide[64:]))
def _inflate(data, limit, code):
    about = _try(code, zstandard.get_frame_parameters, data)
    _need(0 < about.content_size <= limit and about.window_size <= MIB8, code)
    return _try(code, zstandard.ZstdDecompressor().decompress, data, allow_extra_data=False)
def _unpad(plain, code):
    _need(4 <= len(plain) >= (end := 4 + int.from_bytes(plain[:4])) and not any(plain[end:]), code)
    return plain[4:end]
def _signed(plain, kind, path, known, table, codes):  # 3.5 to 3.9, 4.7 to 4.11
    document = decode(_unpad(plain, "padding"))
    _need(_fits(document, [str, bytes, 64, 3309]), "document")
    _need(document[0] == kind, "trust.type")
    statement = name = decode(document[1])
    for key in path: name = name.get(key) if type(name) is dict else None
    _need(_fits(name, (32, 1984)), codes[0])
    public = name if len(name) == 1984 else known.get(name)
    _need(public and (public != name or _sha(name) in known), codes[1])
    context, inner, ed = kind.encode(), document[1], _point(public)[:32]
    message = b"DSSEv1 %d %s %d %s" % (len(context), context, len(inner), inner)
    ed, ml = ed25519.Ed25519PublicKey.from_public_bytes(ed), mldsa.MLDSA65PublicKey
    _try("trust.signature", ed.verify, document[2], message)
    _try("trust.signature", ml.from_public_bytes(public[32:]).verify, document[3], message, context)
    _need(_fits(statement, table), codes[0])  # 3.10, 4.12
    return statement
def _passing(missing, found, check, *more):  # hashes and values, the lowest attempt first
    passed, failed = {}, [Refused(missing)]
    for data in filter(None, found):
        try: passed[_sha(data)] = check(data, *more)
        except Refused as refused: failed.append(refused)
    if not passed: raise failed[:2][-1]
    return [*passed.items()]
class Held:  # what a reader is given, and what it has found by then; naming keys by epoch
    highest, anchor, high_water, clock, archival = 1, (0, ZERO), (0, ZERO), 0, False
    def __init__(self, **given) -> None:  # stream, locator, owner_digest, identities, ...
        self.naming, self.packs, self.where, self.links, self.done = {}, {}, {}, {}, {}
        self.__dict__.update(given)
        self.frame = functools.lru_cache(4)(self.read_frame)
    def times(self, issued, expires, code="fresh.expired"):  # 3.12, 3.13, 4.26 to 4.28, 6.1, 7.9
        _need(issued <= (now := self.now()) + 600, "fresh.ahead", now >= self.clock, "fresh.clock",
              self.archival or now < expires, code)
    def record(self, of=None):  # the stream's, in a registry
        _need(rows := [r for r in (of or self.registry)[3] if r[0] == self.stream], "trust.stream")
        return rows[0]
    def epoch(self, sequence):  # the epoch it lies in
        return [row for row in self.record()[3] if row[1] <= sequence or row[0] == 1][-1]
    def unwrap(self, data, at, kind, epoch, more=b""):  # the key, and where the header ends
        place = _short(self.stream.encode(), 1) + epoch.to_bytes(4)
        place += _short(self.record()[1].encode(), 1) + data[at:at + 32]
        info, ends = b"durarepo/1" + bytes([kind]) + place + more, (at + 4704, at + 9376)
        for n, seed in product(range(at + 32, ends[1], STANZA), self.identities):
            try: key = SUITE.decrypt(data[n:n + STANZA], _private(seed), info)
            except (InvalidTag, ValueError): continue
            told = _mac(key, b"commit", info)
            good = [end + 32 for end in ends if n < end and data[end:end + 32] == told]
            _need(good, "commitment")
            return key, good[0]
        raise Refused("stanza")
    def unbox(self, box, kind, epoch, more=b""):
        key, end = self.unwrap(box, 0, kind, epoch, more)
        return _gcm(key, box[end:], "seal")
    def key(self, epoch, label):  # a subkey of the naming key
        if epoch not in self.naming:
            self.naming[epoch] = self.unbox(self.record()[3][epoch - 1][7], 5, epoch)
        return _sub(self.naming[epoch], label)
    def slot(self, key, *place):  # the objects of a slot, up to the first attempt that is free
        names = (_mac(key, *place, bytes([attempt])).hex() for attempt in range(8))
        return [*takewhile(lambda data: data is not None, map(self.get, names))]
    def registries(self, version):
        return self.slot(_sub(self.locator, b"registry-slot"), b"\3", bytes(4), version.to_bytes(8))
    def open_registry(self, data, version):  # 3.1 to 3.11
        _need(len(data) in CLASSES[:4], "object-size", data[:1] == b"\1", "version")
        key, info = _mac(_sub(self.locator, b"registry-seal"), data[1:33]), bytes(6) + data[1:33]
        _need(_mac(key, b"commitdurarepo/1\4", info) == data[33:65], "commitment")
        statement = _signed(_gcm(key, data[65:], "seal"), "durarepo/1/registry", [2],
                            {self.owner_digest: None}, REGISTRY, ("registry", "trust.owner"))
        _need(statement[0] == version, LATE)
        return statement
    def find_registry(self):  # format 9, 3.11 to 3.13
        version = next(n for n in count(self.highest) if not self.registries(n + 1))
        self.registry = _passing(LATE, self.registries(version), self.open_registry, version)[0][1]
        self.times(*self.registry[1].values(), "fresh.registry-expired")
    def open_envelope(self, data, sequence, epoch=0):  # 4.1 to 4.19, but 4.17
        record, row = self.record(), self.record()[3][epoch - 1] if epoch else self.epoch(sequence)
        _need(len(data) in CLASSES[:6], "object-size", data[:1] == b"\1", "version")
        mark = _mac(self.key(row[0], b"mark"), data[:-32]) if row[0] in self.naming else data[-32:]
        _need(mark == data[-32:], "mark")
        key, end = self.unwrap(data, 1, 2, row[0])
        known = {_sha(public): public for public, _ in row[3]}
        statement = _signed(_gcm(key, data[end:-32], "seal"), "durarepo/1/manifest", [0, 4], known,
                            MANIFEST, ("statement", "trust.unknown-signer"))
        who, link = statement[0], statement[1]
        _need(link[3] == _sha(data[:end]), "trust.header",
              [who[0], who[2], who[3]] == [record[0], record[1], record[2]], "trust.stream",
              who[1] == row[0] == self.epoch(link[0])[0], "trust.epoch",
              dict(row[3])[known[who[4]]] & 1, "trust.role",
              link[4] <= self.registry[0], LATE, link[0] == sequence, "trust.sequence")
        return statement
    def passing(self, n, first):  # 4.23; in an epoch that has ended, what it is reached back to
        slot = self.slot(self.key(e := self.epoch(n)[0], b"slot"), struct.pack(">BIQ", 1, e, n))
        passed = _passing("gap", slot, self.open_envelope, n) if slot else []
        if len(passed) < 2 or n >= max(first): return passed
        told = first.get(n + 1) or (self.passing(n + 1, first) or passed)[0][1][1][1]
        return [one for one in passed if one[0] == told] or passed
    def follow(self, wanted=0):  # 4.17, 4.20 to 4.26; returns digest and statement
        (number, _), (seen, told), gap, record = self.anchor, self.high_water, "gap", self.record()
        head, chain, found, now = number, dict([self.anchor]), {}, self.now()
        first = {epoch[1]: epoch[2] for epoch in record[3]}
        while number < head - head % 64 + 64:  # up to the milestone behind the last one found
            number += 1
            try: passed = self.passing(number, first)
            except Refused as torn:  # passed over, unless it was seen before or another follows
                gap = torn.args[0]
                if gap not in ("object-size", "version", "mark") or number <= seen: raise
                continue
            if not passed: continue
            _need(number == head + 1, gap, len(passed) == 1, "trust.fork")
            head, (chain[number], one) = number, passed[0]
            found[number], link, span = one, one[1], one[2]
            last = next((n for n in range(number - 1, 0, -1) if n % 64 == 0 or n in first), 0)
            _need(link[1] == chain[number - 1] == first.get(number, link[1]), "trust.link",
                  link[2] == (chain.get(last, link[2]) if last else ZERO), "trust.link",
                  one[14] <= record[4], "trust.floor",
                  span[1] == span[0] + 86400, "trust.lifetime", span[0] <= now + 600, "fresh.ahead")
        good = all(number <= last and chain.get(last) == digest for number, one in found.items()
                   for epoch in record[3] for key, last, digest in epoch[9] if key == one[0][4])
        _need(good, "fresh.revoked", self.archival or head >= seen, "trust.rollback",
              chain.get(seen, told) == told, "trust.fork", (wanted or head) in found, gap)
        return chain[wanted or head], found[wanted or head]
    def open_nested(self, statement):  # 4.24, 4.28 to 4.32
        sequence, before, *_, version = statement[1].values()
        _need(sequence >= self.record()[4], "trust.floor")
        self.times(*statement[2].values())
        pins, _, abandoned = rows = [statement[key] for key in (11, 12, 13)]
        _need(_fits(rows, PINS) and all(pin[3] <= version for pin in pins)
              and not {*abandoned} & {pin[0] for pin in pins}, "pins")
        try: nested = self.unbox(statement[15], 3, statement[0][1], sequence.to_bytes(8) + before)
        except Refused: raise Refused("nested") from None
        nested = decode(_inflate(nested, MIB8, "nested"))
        _need(_fits(nested, NESTED), "nested-form")
        told = [_short(part[0].encode()) + _short(part[1]) + part[2] for part in nested[1]]
        _need(_sha(b"".join(told)) == nested[2], "component-index")
        return nested
    def open_pack(self, pin):  # 5
        old = self.registry
        if self.record()[3][1:]:
            old = _passing(LATE, self.registries(pin[3]), self.open_registry, pin[3])[0][1]
        epoch = self.record(old)[3][-1][0]
        found = [self.get(pin[0].hex()), *self.slot(self.key(epoch, b"slot"), b"\4", pin[0])]
        tables = _passing("pack-missing", found, open_index, pin, self.key(epoch, b"index"))[0][1]
        self.packs[pin[0]] = epoch, *tables
        self.where |= {chunk: (pin[0], *place) for chunk, place in tables[3].items()}
    def read_frame(self, name, number):  # 6.3 to 6.7
        epoch, data, header, frames, _ = self.packs[name]
        start, end, ids, size, packing, digest = frames[number]
        head, sealed = data[:frames[0][0]], data[start:end]
        _need(_sha(head) == header, "pack-header", _sha(sealed) == digest, "frame-digest")
        key = _mac(self.unwrap(head, 1, 1, epoch)[0], b"frame", number.to_bytes(4),
                   _sha(b"".join(ids)), bytes([packing]))
        plain = _gcm(key, bytes(12) + sealed, "frame-seal")
        plain = _inflate(plain, size, "frame-inflate") if packing else plain
        return _need(len(plain) == size, "frame-inflate") or plain
    def load(self, chunk, wanted, length=None):  # 6.2, 6.8; a chunk of a kind
        _need(chunk in self.where, "chunk-missing")
        name, number, start, end, kind = self.where[chunk]
        plain = self.frame(name, number)[start:end]
        told = bytes([kind]) + len(plain).to_bytes(8) + _sha(plain)
        told = _mac(self.key(self.packs[name][0], b"chunk-id"), told)
        good = kind == wanted and length in (None, len(plain))
        _need(told == chunk, "chunk-id", good, "tree-form" if wanted == 2 else "content")
        return plain
    def pieces(self, content, total=None, kind=0, depth=None):  # 7.6; of a file, in order
        good = _content(content) and depth in (None, content[0])
        _need(good and total in (None, sum(content[1][::2])), "content")
        for length, name in zip(content[1][::2], content[1][1::2]):
            if content[0]:
                yield from self.pieces(decode(self.load(name, 1)), length, kind, content[0] - 1)
            elif name: yield self.load(name, kind, length)
            else: yield from (bytes(min(MIB8, length - n)) for n in range(0, length, MIB8))
    def put(self, entry, path, above=()):  # returns size and value as in a set hash
        value = _sha(entry[13]) if entry[1] == 2 else entry.get(10, ZERO)
        place, at = path[1:] or b".", {"dir_fd": self.root}
        _ = [[*self.pieces(long)] for _, long in entry.get(15, []) if type(long) is list]
        if entry[1] == 0: self.file(entry, path)
        elif entry[1] == 1: value = self.fill(entry[12], path, above)
        elif entry[1] == 2: os.symlink(entry[13], place, **at)
        elif entry[1] == 3: os.mkfifo(place, 0o600, **at)
        when = entry[3][0] * 10**9 + entry[3][1]
        if entry[1] in (0, 1, 3): os.chmod(place, entry[2] & 0o1777, **at)
        if entry[1] < 4: os.utime(place, ns=(when, when), follow_symlinks=False, **at)
        self.done[path] = entry, value
        return entry.get(9, 0).to_bytes(8) + value
    def fill(self, tree, path, above):  # 7.1 to 7.5; returns the set hash
        if above: os.mkdir(path[1:], 0o700, dir_fd=self.root)
        value, base, text = decode(self.load(tree, 2)), path.rstrip(b"/") + b"/", b""
        node = _fits(value, [range(1, 2), _rows([bytes, 32], 2)])
        leaves = [decode(self.load(row[1], 2)) for row in value[1]] if node else [value]
        good = all(_fits(leaf, [range(1), list]) and len(leaf[1]) >= node for leaf in leaves)
        _need(good and tree not in above, "tree-form")
        entries = [entry for leaf in leaves for entry in leaf[1]]
        _need(all(_fits(entry, ENTRY) for entry in entries), "entry")
        names = [entry[0] for entry in entries]
        good = not node or [leaf[1][0][0] for leaf in leaves] == [row[0] for row in value[1]]
        _need(all(map(NAMED.fullmatch, names)), "name", good and _rising(names), "tree-order",
              all(len(base + name) <= 4096 for name in names), "path")
        for entry, name in zip(entries, names):
            text += _short(name) + bytes([entry[1]]) + self.put(entry, base + name, (*above, tree))
        return _sha(text)
    def file(self, entry, path):
        told, size, fd, same = hashlib.sha256(), entry[9], self.root, repr({**entry, 0: b""})
        twin = self.links.setdefault(same, path) if 16 in entry else path
        if twin != path: return os.link(twin[1:], path[1:], src_dir_fd=fd, dst_dir_fd=fd)
        single = [size, _mac(self.single, b"\0", size.to_bytes(8), entry.get(10, b""))]
        with open(path[1:], "xb", opener=functools.partial(os.open, dir_fd=fd)) as out:
            for piece in self.pieces(entry.get(11, [0, single]), size) if size else ():
                told.update(piece)
                _ = out.write(piece) if piece.strip(b"\0") else out.seek(len(piece), 1)
            out.truncate()
        _need(told.digest() == entry.get(10, told.digest()), "file-hash")
    def checkout(self, nested, destination, permit):  # 7.8, 7.9
        scratch, text = destination.with_name(destination.name + ".partial"), b""
        scratch.mkdir(0o700)
        self.root = os.open(scratch, os.O_DIRECTORY)
        sys.setrecursionlimit(max(20000, sys.getrecursionlimit()))
        try:
            for path, entry in nested[0]:
                _need(_fits(entry, ROOT), "entry")
                os.makedirs(os.fsencode(scratch) + path, exist_ok=True)
                value = self.put(entry, path)[8:]
                text += b"" if path.startswith(b"/.durarepo/components/") else _short(path) + value
            for kind, name, told, *_ in map(dict.values, nested[1]):
                found = {"files": _sha(text), "sqlite": self.done.get(name[7:], (0, b""))[1]}
                _need(found.get(kind, told) == told, "component")
            permit()
            scratch.rename(destination)
        finally:
            os.close(self.root)
            shutil.rmtree(scratch, ignore_errors=True)
def open_index(data, pin, subkey):  # 5.2 to 5.6; without a pin, ``pin`` is only the name
    good = len(data) == CLASSES[pin[1]] if pin[1:] else len(data) in CLASSES
    _need(good, "object-size", data[:1] == b"\1", "version")
    key, seal = _mac(subkey, b"index", data[1:33]), "index-seal"
    end = int.from_bytes(_gcm(key, data[-36:], "trailer"))
    _need(65 + 4 * STANZA < end < len(data) - 36, "trailer")
    if pin[1:]: _need(_sha(data[end:-36]) == pin[2], "index-digest")
    else: _need(_sha(data) == pin[0], "object-name")
    raw = _inflate(_unpad(_gcm(key, data[end:-36], seal), seal), 4194304, seal)
    size, f, c = struct.unpack(">III", raw[32:44].ljust(12, b"\0"))
    _need(0 < f < 65537 and len(raw) == 44 + 45 * f + 37 * c, "index-form")
    feed = iter(struct.unpack(f">{3 * f}I{f}B{'32s' * f}{c}I{c}B{'32s' * c}", raw[44:]))
    stored, plain, counts, packing, hashes = ([next(feed) for _ in range(f)] for _ in range(5))
    lengths, kinds, ids = ([next(feed) for _ in range(c)] for _ in range(3))
    starts, firsts, ends = ([*accumulate(column, initial=first)] for column, first in (
        (stored, size), (counts, 0), (lengths, 0)))
    _need(size in (4737, 9409) and starts[-1] == end and min(counts) and firsts[-1] == c
          and max(packing) < 2 and max(kinds) < 4 and max(plain) <= MIB8 and min(stored) > 16
          and min(lengths) and plain == [ends[b] - ends[a] for a, b in pairwise(firsts)],
          "index-form")
    named = [ids[a:b] for a, b in pairwise(firsts)]
    chunks = {ids[i]: (n, ends[i] - ends[a], ends[i + 1] - ends[a], kinds[i])
              for n, (a, b) in enumerate(pairwise(firsts)) for i in range(a, b)}
    return data, raw[:32], [*zip(starts, starts[1:], named, plain, packing, hashes)], chunks
def restore(objects, destination, held, now, *, sequence=0, archival=False) -> None:
    """Restore the head or ``sequence``; ``now`` is a number, or gives one whenever it is asked."""
    held.get = lambda name: next((one.read_bytes() for one in objects.glob(f"*/{name}")), None)
    held.archival, held.now = archival, now if callable(now) else lambda: now
    held.find_registry()
    held.digest, held.statement = _, statement = held.follow(sequence)
    nested, times = held.open_nested(statement), statement[2].values()
    for p in [p for p in statement[11] if p[0] not in dict(statement[12])]: held.open_pack(p)
    held.times(*times)  # 6.1
    ledger = nested[3] if type(nested[3]) is bytes else b"".join(held.pieces(nested[3], kind=3))
    _need(_fits(decode(ledger), LEDGER), "nested-form")
    held.single = held.key(statement[0][1], b"chunk-id")
    held.checkout(nested, destination, lambda: held.times(*times))  # 7.9
def main(objects, target, stream, now, *files):  # three key files, perhaps --archival
    locator, owner, seed = (bytes.fromhex(open(f).read().split()[-2]) for f in files[:3])
    held = Held(stream=stream, locator=locator, owner_digest=_sha(owner), identities=[seed])
    restore(pathlib.Path(objects), pathlib.Path(target), held, int(now), archival=len(files) > 3)
    for path, (entry, value) in held.done.items(): print(value.hex(), entry.get(9, 0), ascii(path))
if __name__ == "__main__": main(*sys.argv[1:])
