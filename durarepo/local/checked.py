"""When the content of each pack was last checked: what a partial check takes next.

It only chooses an order and is believed for nothing else, so a file that is damaged or lost
counts as "nothing was checked yet". Times are seconds since 1970.
Source: spec/cli.md 4 (verify --data=PERCENT). Start at `CheckedPacks.choose`.
"""

import json
import os
from collections.abc import Container, Iterable, Mapping

from durarepo.core.limits import MIB
from durarepo.core.names import ObjectName, is_object_name
from durarepo.store.atomic import make_folder, read_small, replace_small

_MAX_BYTES = 64 * MIB
_NEVER = -1


class CheckedPacks:
    """The file of one ``STATE/STREAM`` folder."""

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = os.path.join(folder, b"checked.json")

    def times(self) -> dict[ObjectName, int]:
        """Return when each pack was last checked; packs that never were do not stand there.

        Raises:
            StoreError: the file is there and cannot be read.
        """
        data = read_small(self.path, _MAX_BYTES)
        try:
            value = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            value = {}
        if not isinstance(value, dict):
            return {}
        return {
            ObjectName(name): time
            for name, time in value.items()
            if is_object_name(name) and type(time) is int
        }

    def choose(self, sizes: Mapping[ObjectName, int], wanted_bytes: float) -> set[ObjectName]:
        """Return packs of at least ``wanted_bytes`` together, the longest unchecked first.

        Args:
            sizes: bytes of every pack that may be chosen.
            wanted_bytes: how much is to be checked.

        Raises:
            StoreError: the file is there and cannot be read.
        """
        times = self.times()
        chosen: set[ObjectName] = set()
        size = 0
        for name in sorted(sizes, key=lambda one: (times.get(one, _NEVER), one)):
            if size >= wanted_bytes:
                break
            chosen.add(name)
            size += sizes[name]
        return chosen

    def note(self, names: Iterable[ObjectName], now: int, *, pinned: Container[ObjectName]) -> None:
        """Note that packs were checked at ``now``; forget those that are not pinned any more.

        Raises:
            StoreError: it cannot be written; what was held stays.
        """
        times = {name: time for name, time in self.times().items() if name in pinned}
        times |= dict.fromkeys(names, now)
        make_folder(self._folder)
        replace_small(self.path, json.dumps(times, separators=(",", ":")).encode("ascii"))
