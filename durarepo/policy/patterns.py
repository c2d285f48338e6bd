"""The operator's own patterns of a root: what stream.toml leaves out and takes back.

A pattern without a slash is compared with every name, one with a slash with the path below the
root; ``*`` and ``?`` do not cross a slash in names, ``**`` does in paths. What ``include`` names
stays although ``exclude`` names it. Pure text in, decisions out. Source: spec/cli.md 3.
Start at `PatternRule`.
"""

import re
from collections.abc import Iterable

RULE_OPERATOR = "operator"


def _translated(pattern: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
            continue
        if pattern.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        out.append({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)))
        at += 1
    return "".join(out)


def _compiled(patterns: Iterable[str], *, whole: bool) -> re.Pattern[str] | None:
    chosen = [one.strip("/") for one in patterns if ("/" in one.strip("/")) == whole]
    if not chosen:
        return None
    return re.compile("(?:" + "|".join(map(_translated, chosen)) + r")\Z", re.DOTALL)


class PatternRule:
    """Decides for one root."""

    def __init__(self, root: bytes, *, exclude: Iterable[str], include: Iterable[str]) -> None:
        """Prepare.

        Args:
            root: absolute path of the root.
            exclude: what to leave out.
            include: what to keep all the same.
        """
        exclude, include = tuple(exclude), tuple(include)
        self._prefix = len(root.rstrip(b"/")) + 1
        self._out = (_compiled(exclude, whole=False), _compiled(exclude, whole=True))
        self._in = (_compiled(include, whole=False), _compiled(include, whole=True))

    def __call__(self, folder: bytes, name: bytes) -> str | None:
        """Return the rule's id if ``name`` in ``folder`` is left out, else None."""
        if self._out == (None, None):
            return None
        text = name.decode("utf-8", "surrogateescape")
        below = folder[self._prefix :]
        path = (below + b"/" + name if below else name).decode("utf-8", "surrogateescape")
        if _fits(self._out, text, path) and not _fits(self._in, text, path):
            return RULE_OPERATOR
        return None


def _fits(
    pair: tuple[re.Pattern[str] | None, re.Pattern[str] | None], name: str, path: str
) -> bool:
    by_name, by_path = pair
    return bool((by_name and by_name.match(name)) or (by_path and by_path.match(path)))
