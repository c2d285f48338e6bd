"""The nested part of a manifest: what a run kept, left out, and where it ran.

Source: spec/format.md 7.3. Start at `compose_nested`.
"""

import platform
from collections import Counter

from durarepo import __version__
from durarepo.core.entries import ChunkList, Run
from durarepo.core.limits import LEDGER_INLINE_BYTES, MIB, NESTED_MAX_BYTES
from durarepo.format.layout import ChunkKind
from durarepo.format.manifest import (
    Component,
    LedgerLine,
    Nested,
    OmissionClass,
    Root,
    encode_ledger,
)
from durarepo.repository.chunks import ChunkSink
from durarepo.repository.tally import Tally

_LEDGER_SPARE_BYTES = 4096
_LEDGER_PART_BYTES = MIB // 2


def compose_nested(
    tally: Tally,
    sink: ChunkSink,
    *,
    roots: tuple[Root, ...],
    set_hash: bytes,
    configuration: bytes,
    policy: str,
) -> Nested:
    """Return the nested part of a run's manifest; a long ledger is put as chunks.

    Args:
    tally: what was counted.
    sink: where ledger chunks go.
    roots: the roots as they were kept.
    set_hash: integrity hash of the component ``files``.
    configuration: the text of stream.toml.
    policy: version of the policy that judged.
    """
    files = Component(
        kind="files",
        name=b"files",
        integrity=set_hash,
        counts=(("bytes", tally.bytes), ("dirs", tally.dirs), ("files", tally.files)),
    )
    databases = sorted(tally.databases, key=lambda one: one.name)
    return Nested(
        roots=roots,
        components=(files, *databases),
        ledger=_ledger(tally, sink),
        configuration=configuration,
        host=(
            ("durarepo", __version__),
            ("host", platform.node()),
            ("system", f"{platform.system()} {platform.release()}"),
        ),
        epoch_facts=(),
        policy=policy,
    )


def _ledger(tally: Tally, sink: ChunkSink) -> bytes | ChunkList:
    lines = sorted(tally.lines, key=lambda one: (one.path, one.kind, one.rule))
    data = encode_ledger(lines)
    if len(data) > NESTED_MAX_BYTES:
        data = encode_ledger(_shortened(lines))
    if len(data) <= LEDGER_INLINE_BYTES:
        return data
    runs: list[Run] = []
    for at in range(0, len(data), _LEDGER_PART_BYTES):
        part = data[at : at + _LEDGER_PART_BYTES]
        chunk, owner = sink.put(ChunkKind.LEDGER, part)
        tally.owners.add(owner)
        runs.append(Run(len(part), chunk))
    return ChunkList(0, tuple(runs))


def _shortened(lines: list[LedgerLine]) -> list[LedgerLine]:
    """Return a ledger that fits: omissions first, then one line a class with how many more."""
    kept: list[LedgerLine] = []
    more: Counter[OmissionClass] = Counter()
    room = NESTED_MAX_BYTES - _LEDGER_SPARE_BYTES
    for line in sorted(lines, key=lambda one: one.kind is not OmissionClass.OMISSION):
        room -= len(encode_ledger([line]))
        if room >= 0:
            kept.append(line)
        else:
            more[line.kind] += line.count
    return kept + [
        LedgerLine(kind=kind, path=b"", rule="ledger-full", stage="ledger", count=count)
        for kind, count in sorted(more.items())
    ]
