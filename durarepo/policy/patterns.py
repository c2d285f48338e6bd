"""The operator's own patterns of a root: what stream.toml leaves out and takes back.

A pattern without a slash is compared with every name, one with a slash with the path below the
root, and so is one that begins with ``./`` or with the root itself; ``*`` and ``?`` do not cross a
slash, ``**`` does. What ``include`` names stays although ``exclude`` names it. Pure text in,
decisions out. Source: spec/cli.md 3. Start at `PatternRule`.
"""

import re
from collections.abc import Iterable

from durarepo.core.errors import ConfigurationError

RULE_OPERATOR = "operator"
_FORM = "write a name such as '*.log', or a path below the root such as 'build/out'"


def check_pattern(root: bytes, pattern: str) -> None:
    """Refuse a pattern that can never fit anything below a root.

    Args:
        root: absolute path of the root.
        pattern: of its ``exclude`` or ``include``.

    Raises:
        ConfigurationError: ``invalid``: it is empty, lies outside, is no plain path, or has a
            ``[`` without its ``]``.
    """
    text, _ = _below(root, pattern)
    why = ""
    if not text.strip("/"):
        why = "is empty or names the root itself"
    elif text.startswith("/"):
        why = "is an absolute path that does not lie below the root"
    elif {"", ".", ".."} & set(text.removesuffix("/").split("/")):
        why = "has a part that is empty, '.' or '..'"
    elif "[" in text[text.rfind("]") + 1 :]:
        why = "has a '[' without its ']'"
    if why:
        raise ConfigurationError("invalid", f"the pattern {pattern!r} {why}", hint=_FORM)


def _below(root: bytes, pattern: str) -> tuple[str, bool]:
    """Return a pattern as it is below the root, and whether it is a path and no name."""
    for prefix in (root.rstrip(b"/").decode("utf-8", "surrogateescape") + "/", "./"):
        if pattern.startswith(prefix):
            return pattern[len(prefix) :], True
    return pattern, "/" in pattern.strip("/")


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


def _compiled(patterns: Iterable[tuple[str, bool]], *, whole: bool) -> re.Pattern[str] | None:
    chosen = [one.strip("/") for one, is_path in patterns if is_path == whole]
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
        out = [_below(root, one) for one in exclude]
        kept = [_below(root, one) for one in include]
        self._prefix = len(root.rstrip(b"/")) + 1
        self._out = (_compiled(out, whole=False), _compiled(out, whole=True))
        self._in = (_compiled(kept, whole=False), _compiled(kept, whole=True))

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
