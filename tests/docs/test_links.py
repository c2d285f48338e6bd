"""The pages begin with what works and point only to what exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "spec").rglob("*.md"))]

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def anchors_of(text: str) -> set[str]:
    """Return the anchors that a page's headings make, the way Git hosts form them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in plain}


def find_dead_links(page: Path, text: str) -> Iterator[str]:
    """Yield the links of a page that lead to no file, or to no heading of it."""
    for link in _LINK.findall(text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve()
        read = target.read_text() if path and target.is_file() else text
        if not target.exists() or (anchor and anchor not in anchors_of(read)):
            yield link


def test_the_readme_begins_with_the_two_commands() -> None:
    """Who has only the clone looks at the first lines and types them."""
    _, first, *_ = (TOP / "README.md").read_text().split("```")
    commands = [line.partition("#")[0].strip() for line in first.splitlines()[1:] if line]

    assert commands == ["sh cli/durarepo quickstart ~/notes", "sh tests/run"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TOP).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """A specification with dead references cannot be followed by another implementer."""
    assert list(find_dead_links(page, page.read_text())) == []


@pytest.mark.parametrize(
    "planted", ["[a](gone.md)", "[b](README.md#no-such-heading)", "# One\n[c](#two)"]
)
def test_a_planted_dead_link_is_found(planted: str) -> None:
    """A missing file, a missing heading elsewhere, a missing heading here."""
    assert list(find_dead_links(TOP / "README.md", planted))


def test_living_links_are_left_alone() -> None:
    """A file, a heading of this page, and another site."""
    text = "# Two words\n[a](spec/format.md) [b](#two-words) [c](https://example.org/x)"

    assert not list(find_dead_links(TOP / "README.md", text))
