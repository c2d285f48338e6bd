"""A remote is asked to create, to look and to read; only the capability check tries more (A4f)."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.sources import COMMAND_LINE, LIBRARY, Source, tree_sources

CHECK = "durarepo/store/servercheck.py"
MIRROR = "durarepo/mirror/"
VERBS = {"DELETE", "PATCH", "POST", "MOVE", "COPY", "MKCOL", "PROPFIND", "PROPPATCH", "LOCK"}


def find_verbs(source: Source) -> Iterator[str]:
    """Yield each method by which something could be taken away or replaced, and unasked PUTs."""
    if source.path == CHECK:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and node.value in VERBS:
            yield source.finding(node, f"knows the method {node.value}")
        if isinstance(node, ast.keyword) and node.arg == "is_conditional":
            yield source.finding(node.value, "sends a PUT without condition")


def test_only_the_capability_check_knows_verbs_that_take_away() -> None:
    """What the client has no word for, it cannot be made to say; the mirror has no answer to it."""
    sources = tree_sources(LIBRARY, COMMAND_LINE)

    assert [line for source in sources for line in find_verbs(source)] == []
    assert any(source.path.startswith(MIRROR) for source in sources)


@pytest.mark.parametrize(
    "planted",
    [
        "transport.exchange('DELETE', path)",
        "METHODS = ('GET', 'PATCH')",
        "send_fields(digest, is_conditional=False)",
    ],
)
def test_a_planted_verb_is_found(planted: str) -> None:
    """In a call, in a table, and by leaving the condition out."""
    assert list(find_verbs(Source.parse("durarepo/operations/push.py", planted)))
