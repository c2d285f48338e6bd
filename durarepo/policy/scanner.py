"""The engines that look for probes: google-re2, or Hyperscan where it is installed.

The only module that imports them. Both only say which rules may hold; `scanning` confirms, so
the decision is the same. An engine that cannot be had, or that does not see what it must see,
ends the run: nothing is kept unscanned.
Source: google/re2 and Intel Hyperscan documentation, spec/exclusion.md 4. Start at `open_engine`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec

from durarepo.core.errors import SourceError
from durarepo.policy.contentrules import ContentRules
from durarepo.policy.scanning import Engine, shared_rules

RE2 = "re2"
HYPERSCAN = "hyperscan"

_MEMORY_BYTES = 256 * 1024 * 1024

_SEVERAL_BLOCKS_BYTES = 256 * 1024
"""More than `scanning` ever has confirmed without asking for each part of it."""

Find = Callable[[bytes], Sequence[int]]


class _Engine:
    """An engine: a name and a way to look for each of the two lists of probes."""

    def __init__(self, name: str, find: Find, find_configuration: Find) -> None:
        self.name = name
        self._find = find
        self._find_configuration = find_configuration

    def candidates(self, data: bytes) -> Sequence[int]:
        return self._find(data)

    def configuration_candidates(self, data: bytes) -> Sequence[int]:
        return self._find_configuration(data)


@lru_cache(2)
def open_engine(name: str = "") -> Engine:
    """Return an engine, compiled once a process.

    Args:
        name: `RE2` or `HYPERSCAN`; without one, Hyperscan if it is there and re2 otherwise.

    Raises:
        SourceError: ``scanner``: no engine, or one that does not see what it must.
    """
    rules = shared_rules()
    if name in ("", HYPERSCAN):
        try:
            return _checked(_hyperscan(rules), rules)
        except ImportError:
            if name == HYPERSCAN:
                raise _refused("hyperscan is not installed") from None
    try:
        return _checked(_re2(rules), rules)
    except ImportError:
        raise _refused("google-re2 is not installed") from None


def usual_engine() -> str | None:
    """Return the name of the engine that `open_engine` takes, without compiling; None for none."""
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


def _checked(engine: Engine, rules: ContentRules) -> Engine:
    """Refuse an engine or a table that does not see a header, or sees one where none is."""
    line = b"-" * 5 + b"BEGIN " + b"PRIVATE" + b" KEY" + b"-" * 5
    seen = [rules.rule(number).id for number in engine.candidates(b"text " + line + b" text")]
    if "key-pem" not in seen or engine.candidates(b"text without anything in it"):
        raise _refused(f"{engine.name} does not find what it must find")
    return engine


def _re2(rules: ContentRules) -> Engine:
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
    except re2.error as error:
        raise _refused("the table of rules is damaged") from error
    return _Engine(RE2, find, find_configuration)


def _hyperscan(rules: ContentRules) -> Engine:
    import hyperscan  # noqa: PLC0415 - optional, and chosen at start

    def finder(probes: Sequence[bytes]) -> Find:
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=list(probes),
            ids=list(range(len(probes))),
            elements=len(probes),
            flags=hyperscan.HS_FLAG_SINGLEMATCH,
        )

        def find(data: bytes) -> Sequence[int]:
            found: list[int] = []
            database.scan(data, match_event_handler=lambda number, *_: found.append(number))
            return sorted(found)

        return find

    try:
        find, find_configuration = finder(rules.probes), finder(rules.configuration_probes)
    except hyperscan.error as error:
        raise _refused("the table of rules is damaged") from error
    return _Engine(HYPERSCAN, find, find_configuration)
