"""The engines that look for probes: google-re2, and Hyperscan where it is installed.

The only module that imports them. Both only say which rules may hold; `scanning` confirms, so
the decision is the same, and one may take over from the other. An engine that cannot be had, or
that does not see what it must see, ends the run: nothing is kept unscanned.
Source: google/re2 and Intel Hyperscan documentation, spec/exclusion.md 4. Start at `open_engine`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib.util import find_spec
from types import ModuleType
from typing import Protocol

from durarepo.core.errors import SourceError
from durarepo.policy.contentrules import MATCH_MAX_BYTES, WIDE_PROBE, ContentRules
from durarepo.policy.scanning import Engine, shared_rules

RE2 = "re2"
HYPERSCAN = "hyperscan"

_MEMORY_BYTES = 256 * 1024 * 1024

_MUCH_BYTES = 64 * 1024 * 1024
"""Hyperscan saves over so much what compiling for it costs; many a day's run has less."""

_PIECE_BYTES = 256 * 1024

_SIGHTS_MOST = 32
"""Where more than so many probes stand, asking for all at once is cheaper."""

Find = Callable[[bytes], Sequence[int]]
Seek = Callable[[bytes, int], int | None]


class _Set(Protocol):
    """Many probes asked at once."""

    def Add(self, probe: bytes) -> int: ...  # noqa: N802 - named by re2
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, data: bytes) -> Sequence[int]: ...  # noqa: N802


class _Engine:
    """An engine: a name, and a way to look for each of the lists of probes."""

    def __init__(
        self,
        name: str,
        probes: tuple[Find, Seek],
        *,
        find_configuration: Find,
        sees_wide: Callable[[bytes], bool],
    ) -> None:
        self.name = name
        self.probes = probes
        self.find_configuration = find_configuration
        self.find_wide = sees_wide

    def candidates(self, data: bytes) -> Sequence[int]:
        return self.probes[0](data)

    def seek(self, data: bytes, start: int) -> int | None:
        return self.probes[1](data, start)

    def configuration_candidates(self, data: bytes) -> Sequence[int]:
        return self.find_configuration(data)

    def sees_wide(self, data: bytes) -> bool:
        return self.find_wide(data)


@lru_cache(3)
def open_engine(name: str = "") -> Engine:
    """Return an engine, compiled once a process.

    Args:
        name: `RE2` or `HYPERSCAN`; without one, re2, and Hyperscan if it is there once the data
            are so many that it pays for being compiled.

    Raises:
        SourceError: ``scanner``: no engine, or one that does not see what it must.
    """
    rules = shared_rules()
    try:
        engine = _re2(rules)
        if name == HYPERSCAN:
            return _checked(_hyperscan(rules, engine), rules)
        if name == "" and usual_engine() == HYPERSCAN:
            engine.probes = _later(engine, lambda: _checked(_hyperscan(rules, engine), rules))
        return _checked(engine, rules)
    except ImportError:
        raise _refused(f"{name or RE2} is not installed") from None


def _later(engine: _Engine, larger: Callable[[], _Engine]) -> tuple[Find, Seek]:
    """Return how ``engine`` looks for probes until another one, compiled then, takes over.

    One that cannot be had is no reason to end a run that an engine already sees for.
    """
    (find, first), counted = engine.probes, 0

    def seek(data: bytes, start: int) -> int | None:
        nonlocal counted
        counted += len(data) - start
        if counted > _MUCH_BYTES:
            try:
                engine.name, engine.probes = HYPERSCAN, larger().probes
            except (ImportError, SourceError):
                engine.name, engine.probes = RE2, (find, first)
        return first(data, start)

    return find, seek


def usual_engine() -> str | None:
    """Return the name of the engine that a large run takes, without compiling; None for none."""
    for name, package in ((HYPERSCAN, "hyperscan"), (RE2, "re2")):
        if find_spec(package) is not None:
            return name
    return None


def _refused(why: str) -> SourceError:
    return SourceError(
        "scanner",
        f"contents cannot be scanned for secrets: {why}",
        hint="install durarepo with all its dependencies; nothing is kept unscanned",
    )


def _checked(engine: _Engine, rules: ContentRules) -> _Engine:
    """Refuse an engine or a table that does not see a header, or sees one where none is."""
    line = b"-" * 5 + b"BEGIN " + b"PRIVATE" + b" KEY" + b"-" * 5
    seen = [rules.rule(number).id for number in engine.candidates(b"text " + line + b" text")]
    if "key-pem" not in seen or engine.candidates(b"text without anything in it"):
        raise _refused(f"{engine.name} does not find what it must find")
    return engine


def _re2(rules: ContentRules) -> _Engine:
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - heavy, and chosen at start

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.never_capture = True
    options.log_errors = False
    try:
        probes = _looking_for(rules.probes, re2, options)
        find_configuration, _ = _looking_for(rules.configuration_probes, re2, options)
        wide = re2.compile(WIDE_PROBE, options).search
    except re2.error as error:
        raise _refused("the table of rules is damaged") from error
    return _Engine(
        RE2,
        probes,
        find_configuration=find_configuration,
        sees_wide=lambda data: b"\0" in data and wide(data) is not None,
    )


def _looking_for(probes: Sequence[bytes], re2: ModuleType, options: object) -> tuple[Find, Seek]:
    """Return how one list of probes is looked for with re2."""

    def set_of(kind: Callable[[object], _Set]) -> Find:
        numbers = kind(options)
        for probe in probes:
            numbers.Add(probe)
        numbers.Compile()
        every = range(len(probes))  # it says nothing when its memory does not do
        return lambda data: numbers.Match(data) or every

    any_of = re2.compile(b"|".join(b"(?:%s)" % probe for probe in probes), options).search
    here = set_of(re2.Set.MatchSet)
    anywhere = lru_cache(1)(partial(set_of, re2.Set.SearchSet))

    def find(data: bytes) -> Sequence[int]:
        found: set[int] = set()
        match = any_of(data)
        for _ in range(_SIGHTS_MOST):
            if match is None:
                return sorted(found)
            found.update(here(data[match.start() :]))
            match = any_of(data, match.start() + 1)
        return sorted(anywhere()(data))

    def seek(data: bytes, start: int) -> int | None:
        match = any_of(data, start)
        return None if match is None else int(match.start())

    return find, seek


def _hyperscan(rules: ContentRules, beside: _Engine) -> _Engine:
    """Return an engine that leaves to another what is asked rarely, or costs it much.

    It would compile the few probes of configuration files as long as all others together, and
    is slow over data full of zeros, as databases are.
    """
    import hyperscan  # noqa: PLC0415 - optional, and chosen at start

    probes = rules.probes
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=list(probes),
            ids=list(range(len(probes))),
            elements=len(probes),
            flags=hyperscan.HS_FLAG_SINGLEMATCH,
        )
    except hyperscan.error as error:
        raise _refused("the table of rules is damaged") from error

    def find(data: bytes) -> Sequence[int]:
        found: list[int] = []
        database.scan(data, match_event_handler=lambda number, *_: found.append(number))
        return sorted(found)

    def first_end(piece: bytes) -> int | None:
        ends: list[int] = []

        def end_at_first(_number: int, _from: int, to: int, *_: object) -> bool:
            ends.append(to)
            return True

        with suppress(hyperscan.ScanTerminated):
            database.scan(piece, match_event_handler=end_at_first)
        return ends[0] if ends else None

    def seek(data: bytes, start: int) -> int | None:
        # What is given is copied, so it is given in pieces; no match is longer than the overlap.
        for at in range(start, len(data), _PIECE_BYTES):
            end = first_end(data[at : at + _PIECE_BYTES + MATCH_MAX_BYTES])
            if end is not None:
                return at + end - 1
        return None

    return _Engine(
        HYPERSCAN,
        (find, seek),
        find_configuration=beside.find_configuration,
        sees_wide=beside.find_wide,
    )
