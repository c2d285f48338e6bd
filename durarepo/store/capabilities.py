"""What a remote really does, found by trying it and recorded; nothing is taken on trust.

The only module that sends DELETE or a PUT without condition, and only for objects that it made
itself a moment before. What it writes stays: a few objects of the smallest size class, of
random bytes under random names. Source: spec/mirror.md 6. Start at `check_server`.
"""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Self

from durarepo.core.errors import IntegrityError, RemoteError
from durarepo.core.limits import SIZE_CLASSES
from durarepo.core.names import Digest, ObjectName
from durarepo.crypto.primitives import random_key
from durarepo.store.bodies import body_of_bytes
from durarepo.store.folder import FolderRemote
from durarepo.store.https import (
    MISSING,
    OK,
    PARTIAL,
    STORED,
    WANT_DIGEST,
    HttpsRemote,
    path_of,
    refusal_of,
    reported_digest,
    send_fields,
)
from durarepo.store.port import Body, Put
from durarepo.store.retrying import Patience
from durarepo.store.transport import BrokenOffError, Transport

_SIZE = SIZE_CLASSES[0]
_RACERS = 8
_LOOKS = 5
_LOOK_SECONDS = 0.3
_RANGE = (1000, 1999)


class Can(Enum):
    """Whether a remote does something: seen, not seen, or not to be seen from here."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What was found, one field a row of the specification."""

    create_only: Can = Can.UNKNOWN
    no_overwrite: Can = Can.UNKNOWN
    no_delete: Can = Can.UNKNOWN
    whole_or_nothing: Can = Can.UNKNOWN
    checks_digest: Can = Can.UNKNOWN
    reports_digest: Can = Can.UNKNOWN
    one_winner: Can = Can.UNKNOWN
    range: Can = Can.UNKNOWN
    lists: Can = Can.UNKNOWN
    tells_time: Can = Can.UNKNOWN
    lock: Can = Can.UNKNOWN

    def record(self) -> dict[str, str]:
        """Return all of it as words, to be written down."""
        return {name: str(value.value) for name, value in asdict(self).items()}

    @classmethod
    def of_record(cls, record: dict[str, str]) -> Self:
        """Return what was written down; what is missing or no word of ours is unknown."""
        words = {one.value: one for one in Can}
        known = {name: words.get(record.get(name, ""), Can.UNKNOWN) for name in cls.__slots__}
        return cls(**known)


def check_server(transport: Transport, patience: Patience) -> Capabilities:
    """Try what an HTTPS server does with objects.

    Raises:
        RemoteError: it cannot be used at all: not reached, refused, or an object that was just
            stored does not come back.
    """
    return _ServerCheck(transport, patience).run()


def check_folder(remote: FolderRemote) -> Capabilities:
    """Try what a folder does with objects; whoever can write there can also take away.

    Raises:
        RemoteError: it cannot be used at all.
    """
    one, two = _Probe.new(), _Probe.new()
    remote.send(one.name, one.body)
    broken = _Probe.new()
    with suppress(BrokenOffError):
        remote.put_new(broken.name, _half(broken.data))
    try:
        create_only = remote.send(one.name, two.body) is Put.ALREADY_THERE
    except IntegrityError:
        create_only = True
    first, last = _RANGE
    return Capabilities(
        create_only=_can(is_seen=create_only and remote.read(one.name) == one.data),
        no_overwrite=Can.NO,
        no_delete=Can.NO,
        whole_or_nothing=_can(is_seen=remote.stat(broken.name) is None),
        checks_digest=Can.NO,
        reports_digest=Can.NO,
        one_winner=_winners(_folder_racer(remote)),
        range=_can(
            is_seen=remote.read(one.name, first, last - first + 1) == one.data[first : last + 1]
        ),
        lists=_can(is_seen=one.name in remote.iter_names()),
        tells_time=Can.NO,
        lock=Can.NO,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """A throw-away object: a name that nobody has used, and bytes that nobody has."""

    name: ObjectName
    data: bytes

    @classmethod
    def new(cls) -> Self:
        data = hashlib.shake_256(random_key()).digest(_SIZE)
        return cls(name=ObjectName(random_key().hex()), data=data)

    @property
    def body(self) -> Body:
        return body_of_bytes(self.data)


def _can(*, is_seen: bool) -> Can:
    return Can.YES if is_seen else Can.NO


def _half(data: bytes) -> Iterator[bytes]:
    yield data[: len(data) // 2]
    raise BrokenOffError("broken off on purpose")


def _winners(race: Callable[[ObjectName, _Probe], bool]) -> Can:
    """Let several put other bytes under one name at once: ``NO`` once two were told they won."""
    name = _Probe.new().name
    with ThreadPoolExecutor(_RACERS) as pool:
        won = list(
            pool.map(lambda probe: race(name, probe), [_Probe.new() for _ in range(_RACERS)])
        )
    return Can.NO if sum(won) > 1 else Can.UNKNOWN


def _folder_racer(remote: FolderRemote) -> Callable[[ObjectName, _Probe], bool]:
    def race(name: ObjectName, probe: _Probe) -> bool:
        try:
            return remote.send(name, probe.body) is Put.CREATED
        except IntegrityError:
            return False

    return race


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    data: bytes
    digest: Digest | None
    date: str


class _ServerCheck:
    """One check of one server, step by step."""

    def __init__(self, transport: Transport, patience: Patience) -> None:
        self._transport = transport
        self._patience = patience
        self._known = _Probe.new()

    def run(self) -> Capabilities:
        known = self._known
        first = self._ask("PUT", known.name, self._fields(known.body), body=known.body)
        if first.status not in STORED or self._bytes(known.name) != known.data:
            raise RemoteError(
                "answer",
                f"'{self._transport.base.host}' does not give back what was stored there",
                hint="check the URL, and what the specification asks of a server",
            )
        found = Capabilities(tells_time=_can(is_seen=_is_date(first.date)))
        found = replace(found, create_only=self._create_only(), no_overwrite=self._no_overwrite())
        liar, torn = self._digest_probe(), self._torn_probe()
        return replace(
            found,
            checks_digest=_can(is_seen=self._bytes(liar) is None),
            whole_or_nothing=self._whole_or_nothing(torn),
            reports_digest=self._reports_digest((known.name, liar, torn)),
            one_winner=_winners(self._race),
            range=self._range(),
            lists=self._lists(),
            no_delete=self._no_delete(),
        )

    def _create_only(self) -> Can:
        other = _Probe.new().body
        answer = self._ask("PUT", self._known.name, self._fields(other), body=other)
        is_kept = self._bytes(self._known.name) == self._known.data
        return _can(is_seen=is_kept and answer.status not in STORED)

    def _no_overwrite(self) -> Can:
        before, other = self._bytes(self._known.name), _Probe.new().body
        fields = send_fields(other.digest, is_conditional=False)
        self._ask("PUT", self._known.name, fields, body=other)
        return _can(is_seen=self._bytes(self._known.name) == before)

    def _digest_probe(self) -> ObjectName:
        """Send bytes with the digest of others."""
        probe, other = _Probe.new(), _Probe.new().body
        self._ask("PUT", probe.name, self._fields(other), body=probe.body)
        return probe.name

    def _torn_probe(self) -> ObjectName:
        """Send half of a body and go away."""
        probe = _Probe.new()
        body = replace(probe.body, pieces=lambda: _half(probe.data))
        with suppress(BrokenOffError):
            self._once("PUT", probe.name, self._fields(body), body=body)
        return probe.name

    def _whole_or_nothing(self, torn: ObjectName) -> Can:
        for number in range(_LOOKS):
            if self._ask("HEAD", torn).status != MISSING:
                return Can.NO
            if number + 1 < _LOOKS:
                self._patience.waits.wait(_LOOK_SECONDS)
        return Can.YES

    def _reports_digest(self, names: tuple[ObjectName, ...]) -> Can:
        """Compare what is reported of each object that is there with its bytes."""
        for name in names:
            data = self._bytes(name)
            if data is not None:
                reported = self._ask("HEAD", name, WANT_DIGEST).digest
                if reported != hashlib.sha256(data).digest():
                    return Can.NO
        return Can.YES

    def _race(self, name: ObjectName, probe: _Probe) -> bool:
        return self._ask("PUT", name, self._fields(probe.body), body=probe.body).status in STORED

    def _range(self) -> Can:
        first, last = _RANGE
        answer = self._ask("GET", self._known.name, {"Range": f"bytes={first}-{last}"})
        whole = self._bytes(self._known.name) or b""
        is_right = answer.status == PARTIAL and answer.data == whole[first : last + 1]
        return _can(is_seen=is_right)

    def _lists(self) -> Can:
        before = f"{max(int(self._known.name, 16) - 1, 0):064x}"
        try:
            names = HttpsRemote(self._transport, patience=self._patience).page(before)
        except RemoteError as error:
            if error.code == "remote.unreachable":
                raise
            return Can.NO
        return _can(is_seen=self._known.name in names)

    def _no_delete(self) -> Can:
        before = self._bytes(self._known.name)
        self._ask("DELETE", self._known.name)
        return _can(is_seen=before is not None and self._bytes(self._known.name) == before)

    def _bytes(self, name: ObjectName) -> bytes | None:
        answer = self._ask("GET", name)
        return answer.data if answer.status == OK else None

    def _fields(self, body: Body) -> dict[str, str]:
        return send_fields(body.digest)

    def _ask(
        self,
        method: str,
        name: ObjectName,
        fields: dict[str, str] | None = None,
        *,
        body: Body | None = None,
    ) -> _Answer:
        return self._patience.run(
            lambda: self._once(method, name, fields, body=body), doing="check the remote"
        )

    def _once(
        self,
        method: str,
        name: ObjectName,
        fields: dict[str, str] | None = None,
        *,
        body: Body | None = None,
    ) -> _Answer:
        """Return an answer, whatever it is, unless it says that all else is in vain."""
        with self._transport.exchange(method, path_of(name), fields=fields, body=body) as reply:
            refusal = refusal_of(reply, self._transport.base.host)
            is_over = isinstance(refusal, BrokenOffError) or refusal.code != "remote.answer"
            if reply.status not in STORED and is_over and method != "DELETE":
                raise refusal
            return _Answer(
                status=reply.status,
                data=reply.read(_SIZE),
                digest=reported_digest(reply),
                date=reply.fields.get("date", ""),
            )


def _is_date(text: str) -> bool:
    try:
        return parsedate_to_datetime(text).tzinfo is not None
    except (TypeError, ValueError):
        return False
