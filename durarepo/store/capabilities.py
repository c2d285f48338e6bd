"""What a remote really does, and how a folder is tried; nothing is taken on trust.

A capability is *seen* only where nothing else explains what happened. What a try writes stays:
a few objects of the smallest size class, of random bytes under random names.
Source: spec/mirror.md 6. Start at `Capabilities`; a server is tried in `store/servercheck.py`.
"""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Self

from durarepo.core.errors import IntegrityError
from durarepo.core.limits import SIZE_CLASSES
from durarepo.core.names import ObjectName
from durarepo.crypto.primitives import random_key
from durarepo.store.bodies import body_of_bytes
from durarepo.store.folder import FolderRemote
from durarepo.store.port import Body, Put
from durarepo.store.transport import BrokenOffError

PROBE_BYTES = SIZE_CLASSES[0]
PROBE_RANGE = (1000, 1999)
_RACERS = 8


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


def check_folder(remote: FolderRemote) -> Capabilities:
    """Try what a folder does with objects; whoever can write there can also take away.

    Raises:
        RemoteError: it cannot be used at all.
    """
    one, two = Probe.new(), Probe.new()
    remote.send(one.name, one.body)
    broken = Probe.new()
    with suppress(BrokenOffError):
        remote.put_new(broken.name, _half(broken.data))
    try:
        create_only = remote.send(one.name, two.body) is Put.ALREADY_THERE
    except IntegrityError:
        create_only = True
    first, last = PROBE_RANGE
    return Capabilities(
        create_only=seen(is_seen=create_only and remote.read(one.name) == one.data),
        no_overwrite=Can.NO,
        no_delete=Can.NO,
        whole_or_nothing=seen(is_seen=remote.stat(broken.name) is None),
        checks_digest=Can.NO,
        reports_digest=Can.NO,
        one_winner=winners(_folder_racer(remote)),
        range=seen(
            is_seen=remote.read(one.name, first, last - first + 1) == one.data[first : last + 1]
        ),
        lists=seen(is_seen=one.name in remote.iter_names()),
        tells_time=Can.NO,
        lock=Can.NO,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A throw-away object: a name that nobody has used, and bytes that nobody has."""

    name: ObjectName
    data: bytes

    @classmethod
    def new(cls) -> Self:
        """Return one that has never been anywhere."""
        data = hashlib.shake_256(random_key()).digest(PROBE_BYTES)
        return cls(name=ObjectName(random_key().hex()), data=data)

    @property
    def body(self) -> Body:
        """The bytes, to be sent."""
        return body_of_bytes(self.data)


def seen(*, is_seen: bool) -> Can:
    """Return the word for what a try showed at once."""
    return Can.YES if is_seen else Can.NO


def _half(data: bytes) -> Iterator[bytes]:
    yield data[: len(data) // 2]
    raise BrokenOffError("broken off on purpose")


def winners(race: Callable[[ObjectName, Probe], bool]) -> Can:
    """Let several put other bytes under one name at once: ``NO`` once two were told they won."""
    name = Probe.new().name
    with ThreadPoolExecutor(_RACERS) as pool:
        won = list(pool.map(lambda probe: race(name, probe), [Probe.new() for _ in range(_RACERS)]))
    return Can.NO if sum(won) > 1 else Can.UNKNOWN


def _folder_racer(remote: FolderRemote) -> Callable[[ObjectName, Probe], bool]:
    def race(name: ObjectName, probe: Probe) -> bool:
        try:
            return remote.send(name, probe.body) is Put.CREATED
        except IntegrityError:
            return False

    return race
