"""The engines that look for probes: google-re2, and Hyperscan where it is installed.

The only module that imports them. Both only say which rules may hold; `scanning` confirms, so
the decision is the same, and one may take over from the other. An engine that cannot be had, or
that does not see what it must see, ends the run: nothing is kept unscanned.
Source: google/re2 and Intel Hyperscan documentation, spec/exclusion.md 4. Start at `open_engine`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec

from durarepo.core.errors import SourceError
from durarepo.policy.contentrules import WIDE_PROBE, ContentRules
from durarepo.policy.scanning import Engine, shared_rules

RE2 = "re2"
HYPERSCAN = "hyperscan"

_MEMORY_BYTES = 256 * 1024 * 1024

_MUCH_BYTES = 64 * 1024 * 1024
"""Hyperscan saves over so much what compiling for it costs; many a day's run has less."""

_SEVERAL_BLOCKS_BYTES = 256 * 1024
"""More than `scanning` ever has confirmed without asking for each part of it."""

Find = Callable[[bytes], Sequence[int]]


class _Engine:
    """An engine: a name, and a way to look for each of the lists of probes."""

    def __init__(
        self, name: str, find: Find, *, find_configuration: Find, sees_wide: Callable[[bytes], bool]
    ) -> None:
        self.name = name
        self.find = find
        self.find_configuration = find_configuration
        self.find_wide = sees_wide

    def candidates(self, data: bytes) -> Sequence[int]:
        return self.find(data)

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
            engine.find = _later(engine, lambda: _checked(_hyperscan(rules, engine), rules))
        return _checked(engine, rules)
    except ImportError:
        raise _refused(f"{name or RE2} is not installed") from None


def _later(engine: _Engine, larger: Callable[[], _Engine]) -> Find:
    """Return how ``engine`` looks for probes until another one, compiled then, takes over.

    One that cannot be had is no reason to end a run that an engine already sees for.
    """
    first, seen = engine.find, 0

    def find(data: bytes) -> Sequence[int]:
        nonlocal seen
        seen += len(data)
        if seen > _MUCH_BYTES:
            try:
                engine.name, engine.find = HYPERSCAN, larger().find
            except (ImportError, SourceError):
                engine.name, engine.find = RE2, first
        return first(data)

    return find


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

    def finder(probes: Sequence[bytes]) -> Find:
        numbers = re2.Set.SearchSet(options)
        for probe in probes:
            numbers.Add(probe)
        numbers.Compile()
        any_of = re2.compile(b"|".join(b"(?:%s)" % probe for probe in probes), options).search

        def find(data: bytes) -> Sequence[int]:
            # A plain search is the cheaper question, and nearly always the answer is no.
            if any_of(data) is None:
                return ()
            if len(data) > _SEVERAL_BLOCKS_BYTES:
                return range(len(probes))  # who asks will ask again, part by part
            return sorted(numbers.Match(data) or range(len(probes)))

        return find

    try:
        find, find_configuration = finder(rules.probes), finder(rules.configuration_probes)
        wide = re2.compile(WIDE_PROBE, options).search
    except re2.error as error:
        raise _refused("the table of rules is damaged") from error
    return _Engine(
        RE2,
        find,
        find_configuration=find_configuration,
        sees_wide=lambda data: b"\0" in data and wide(data) is not None,
    )


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

    return _Engine(
        HYPERSCAN,
        find,
        find_configuration=beside.find_configuration,
        sees_wide=beside.find_wide,
    )
