"""What an HTTPS server really does with objects, found by trying it.

The only module that sends DELETE or a PUT without condition, and only for objects that it made
itself a moment before. A capability is found only where the server *refused* what was tried and
the object was seen whole afterwards. An answer that promises something for later, one of a busy
server, and no answer at all show nothing. An object that is tried on is read for the first time
after that, so that no cache can answer for it.
Source: spec/mirror.md 6. Start at `check_server`.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

from durarepo.core.errors import RemoteError
from durarepo.core.names import Digest, ObjectName
from durarepo.store.capabilities import (
    PROBE_BYTES,
    PROBE_RANGE,
    Can,
    Capabilities,
    Probe,
    seen,
    winners,
)
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
from durarepo.store.port import Body
from durarepo.store.retrying import Patience
from durarepo.store.transport import BrokenOffError, Reply, Transport, retry_after

_NO_ANSWER = 0
_PROMISED = range(200, 300)
"""Done, or to be done: 202 as well as 204."""
_FORBIDS = frozenset({403, 405, 409, 412, 423, 501})
"""What says that this is not done to this object, now and later."""
_DISBELIEVES = frozenset({400, 422})
"""What says that bytes are not those that were announced."""
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRIES = 2
_TRY_SECONDS = 30.0
"""A try whose answer is only wanted is not waited for like an object that has to get there."""
_TORN = 3
_PIECE_BYTES = 4096
_PIECES = 5
_PAUSE_SECONDS = 1.0
_LOOK_SECONDS = 0.5


def check_server(transport: Transport, patience: Patience) -> Capabilities:
    """Try what an HTTPS server does with objects.

    Raises:
        RemoteError: it cannot be used at all: not reached, refused, or an object that was just
            stored does not come back.
    """
    return _ServerCheck(transport, patience).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    data: bytes
    digest: Digest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """What was tried with an object, and what the server said to it."""

    probe: Probe
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Torn:
    """A PUT that was broken off; it tells something only if the server was waiting for more."""

    name: ObjectName
    is_telling: bool


class _ServerCheck:
    """One check of one server, step by step."""

    def __init__(self, transport: Transport, patience: Patience) -> None:
        self._transport = transport
        self._patience = patience
        self._brief = replace(patience, tries=_TRIES, total=_TRY_SECONDS)

    def run(self) -> Capabilities:
        known, date = self._stored()
        if self._bytes(known.name) != known.data:
            raise RemoteError(
                "answer",
                f"'{self._transport.base.host}' does not give back what was stored there",
                hint="check the URL, and what the specification asks of a server",
            )
        second = self._put_over(is_conditional=True)
        over = self._put_over(is_conditional=False)
        deleted = self._deleted()
        liar = self._put_with_digest_of_others()
        torn = [self._put_torn() for _ in range(_TORN)]
        whole_or_nothing = self._whole_or_nothing(torn)
        names = [known.name, *(one.probe.name for one in (second, over, liar))]
        return Capabilities(
            create_only=self._kept(second),
            no_overwrite=self._kept(over),
            no_delete=self._kept(deleted),
            whole_or_nothing=whole_or_nothing,
            checks_digest=self._checks_digest(liar),
            reports_digest=self._reports_digest([*names, *(one.name for one in torn)]),
            one_winner=winners(self._race),
            range=self._range(known),
            lists=self._lists(known),
            tells_time=seen(is_seen=_is_date(date)),
        )

    # --- trying: nothing of these objects is read yet ---

    def _put_over(self, *, is_conditional: bool) -> _Tried:
        """Put other bytes under a name that is taken."""
        (probe, _), other = self._stored(), Probe.new().body
        fields = send_fields(other.digest, is_conditional=is_conditional)
        return _Tried(probe=probe, status=self._try("PUT", probe.name, fields, body=other))

    def _deleted(self) -> _Tried:
        probe, _ = self._stored()
        return _Tried(probe=probe, status=self._try("DELETE", probe.name))

    def _put_with_digest_of_others(self) -> _Tried:
        probe, fields = Probe.new(), send_fields(Probe.new().body.digest)
        return _Tried(probe=probe, status=self._try("PUT", probe.name, fields, body=probe.body))

    def _put_torn(self) -> _Torn:
        """Send half of a body, go away, and see that the server takes a whole one right then."""
        probe = Probe.new()

        def pieces() -> Iterator[bytes]:
            for start in range(0, _PIECES * _PIECE_BYTES, _PIECE_BYTES):
                yield probe.data[start : start + _PIECE_BYTES]

        was_waiting = self._transport.leave_off(
            path_of(probe.name),
            fields=send_fields(probe.body.digest),
            body=replace(probe.body, pieces=pieces),
            pause=_PAUSE_SECONDS,
        )
        takes_whole = self._put_once(Probe.new())
        return _Torn(name=probe.name, is_telling=was_waiting and takes_whole)

    # --- looking at what became of it ---

    def _kept(self, tried: _Tried) -> Can:
        if tried.status in _PROMISED or self._bytes(tried.probe.name) != tried.probe.data:
            return Can.NO
        return Can.YES if tried.status in _FORBIDS else Can.UNKNOWN

    def _checks_digest(self, liar: _Tried) -> Can:
        if liar.status in _PROMISED or self._bytes(liar.probe.name) is not None:
            return Can.NO
        return Can.YES if liar.status in _DISBELIEVES else Can.UNKNOWN

    def _whole_or_nothing(self, torn: list[_Torn]) -> Can:
        """Look at each once, ever later: that one is missing may be remembered on the way."""
        for one in torn:
            self._patience.waits.wait(_LOOK_SECONDS)
            if self._ask("HEAD", one.name).status != MISSING:
                return Can.NO
        return Can.YES if all(one.is_telling for one in torn) else Can.UNKNOWN

    def _reports_digest(self, names: list[ObjectName]) -> Can:
        """Compare what is reported of each object that is there with its bytes."""
        for name in names:
            data = self._bytes(name)
            if data is not None:
                reported = self._ask("HEAD", name, WANT_DIGEST).digest
                if reported != hashlib.sha256(data).digest():
                    return Can.NO
        return Can.YES

    def _race(self, name: ObjectName, probe: Probe) -> bool:
        return self._put_once(replace(probe, name=name))

    def _range(self, known: Probe) -> Can:
        first, last = PROBE_RANGE
        answer = self._ask("GET", known.name, {"Range": f"bytes={first}-{last}"})
        is_right = answer.status == PARTIAL and answer.data == known.data[first : last + 1]
        return seen(is_seen=is_right)

    def _lists(self, known: Probe) -> Can:
        before = f"{max(int(known.name, 16) - 1, 0):064x}"
        try:
            names = HttpsRemote(self._transport, patience=self._patience).page(before)
        except RemoteError as error:
            if error.code == "remote.unreachable":
                raise
            return Can.NO
        return seen(is_seen=known.name in names)

    # --- asking ---

    def _stored(self) -> tuple[Probe, str]:
        """Store an object that nobody has seen; return it, and the server's date."""

        def attempt() -> tuple[Probe, str]:
            probe = Probe.new()
            fields = send_fields(probe.body.digest)
            path = path_of(probe.name)
            with self._transport.exchange("PUT", path, fields=fields, body=probe.body) as reply:
                if reply.status not in STORED:
                    raise self._refusal(reply)
                return probe, reply.fields.get("date", "")

        return self._patience.run(attempt, doing="check the remote")

    def _put_once(self, probe: Probe) -> bool:
        """Return whether a PUT was answered as done, at the first time."""
        fields = send_fields(probe.body.digest)
        path = path_of(probe.name)
        try:
            with self._transport.exchange("PUT", path, fields=fields, body=probe.body) as reply:
                return reply.status in STORED
        except BrokenOffError:
            return False

    def _try(
        self,
        method: str,
        name: ObjectName,
        fields: dict[str, str] | None = None,
        *,
        body: Body | None = None,
    ) -> int:
        """Return the status of an answer, whatever it is; 0 where there is none but excuses."""

        def attempt() -> int:
            path = path_of(name)
            with self._transport.exchange(method, path, fields=fields, body=body) as reply:
                if reply.status in _BUSY:
                    raise BrokenOffError(f"it answered {reply.status}", retry_after(reply))
                return reply.status

        try:
            return self._brief.run(attempt, doing="check the remote")
        except RemoteError as error:
            if error.code != "remote.unreachable":
                raise
            return _NO_ANSWER

    def _bytes(self, name: ObjectName) -> bytes | None:
        answer = self._ask("GET", name)
        return answer.data if answer.status == OK else None

    def _ask(self, method: str, name: ObjectName, fields: dict[str, str] | None = None) -> _Answer:
        return self._patience.run(
            lambda: self._once(method, name, fields), doing="check the remote"
        )

    def _once(self, method: str, name: ObjectName, fields: dict[str, str] | None) -> _Answer:
        """Return an answer, whatever it is, unless it says that all else is in vain."""
        with self._transport.exchange(method, path_of(name), fields=fields) as reply:
            refusal = self._refusal(reply)
            if isinstance(refusal, BrokenOffError) or refusal.code != "remote.answer":
                raise refusal
            return _Answer(
                status=reply.status, data=reply.read(PROBE_BYTES), digest=reported_digest(reply)
            )

    def _refusal(self, reply: Reply) -> RemoteError | BrokenOffError:
        return refusal_of(reply, self._transport.base.host)


def _is_date(text: str) -> bool:
    try:
        return parsedate_to_datetime(text).tzinfo is not None
    except (TypeError, ValueError, IndexError, OverflowError):
        return False
