"""Ask the exclusion policy what would become of paths: by the rules alone. No change.

Source: spec/cli.md 4 (exclude test, explain), spec/exclusion.md. Start at `judge_paths`.
"""

from collections.abc import Iterable, Iterator

from durarepo.source.judging import Tested, bare_test


def judge_paths(root: bytes, paths: Iterable[bytes], *, engine: str = "") -> Iterator[Tested]:
    """Yield what would become of each path by the rules alone, in their order.

    Args:
        root: the folder that plays the root and the home.
        paths: below it; relative ones are taken from it. One that is missing is judged by name.
        engine: of `scanner.open_engine`; the best one by default.

    Raises:
        SourceError: ``scanner``: contents cannot be scanned; or a file cannot be read.
        SelectionError: ``outside``: a path does not lie in the root.
    """
    test = bare_test(root, engine=engine)
    for path in paths:
        yield test.judge(path)
