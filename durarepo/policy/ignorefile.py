"""`.durarepoignore`: what somebody who works in a folder leaves out of its backup.

The syntax is that of gitignore, and the files of deeper folders speak last. A ``!`` takes back
what such a file has left out and nothing else: no file inside the data ever brings back what
the policy leaves out.
Source: gitignore(5), spec/exclusion.md 7. Start at `parse_ignore`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

IGNORE_NAME = b".durarepoignore"
IGNORE_MAX_BYTES = 1024 * 1024
RULE_IGNORE = "durarepoignore"


@dataclass(frozen=True, slots=True)
class IgnorePattern:
    """One line: what it matches, whether it takes back, and whether it means folders only."""

    matcher: re.Pattern[bytes]
    is_taken_back: bool
    only_folders: bool


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one file, in order, and the folder in which it lies."""

    folder: bytes
    patterns: tuple[IgnorePattern, ...]


def parse_ignore(data: bytes, folder: bytes) -> IgnoreFile:
    """Return the patterns of a file; a line that cannot be understood leaves nothing out."""
    patterns: list[IgnorePattern] = []
    for line in data[:IGNORE_MAX_BYTES].removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        pattern = _pattern(line)
        if pattern is not None:
            patterns.append(pattern)
    return IgnoreFile(folder.rstrip(b"/"), tuple(patterns))


def is_ignored(files: Sequence[IgnoreFile], path: bytes, *, is_folder: bool) -> bool:
    """Return whether a path is left out by files of the folders above it.

    Args:
        files: from the outermost folder to the innermost.
        path: absolute path of the name.
        is_folder: whether it is a directory.
    """
    for file in reversed(files):
        below = path[len(file.folder) + 1 :]
        for pattern in reversed(file.patterns):
            if pattern.only_folders and not is_folder:
                continue
            if pattern.matcher.fullmatch(below):
                return not pattern.is_taken_back
    return False


def _pattern(line: bytes) -> IgnorePattern | None:
    text = _without_trailing_space(line.removesuffix(b"\r"))
    if not text or text.startswith(b"#"):
        return None
    is_taken_back = text.startswith(b"!")
    if is_taken_back:
        text = text[1:]
    only_folders = text.endswith(b"/")
    text = text.rstrip(b"/") if only_folders else text
    is_anchored = b"/" in text
    text = text.removeprefix(b"/")
    if not text:
        return None
    try:
        matcher = re.compile((b"" if is_anchored else b"(?:.*/)?") + _translated(text), re.DOTALL)
    except re.error:
        return None
    return IgnorePattern(matcher, is_taken_back, only_folders)


def _without_trailing_space(line: bytes) -> bytes:
    stripped = line.rstrip(b" ")
    is_escaped = (len(stripped) - len(stripped.rstrip(b"\\"))) % 2 == 1
    return stripped + b" " if is_escaped and len(stripped) < len(line) else stripped


_TOKEN = re.compile(
    rb"\A\*\*/|/\*\*\Z|/\*\*/|\*+|\?|\\.|\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\]|.", re.DOTALL
)
_CLASSES = {
    b"[:alpha:]": b"A-Za-z",
    b"[:digit:]": b"0-9",
    b"[:alnum:]": b"A-Za-z0-9",
    b"[:upper:]": b"A-Z",
    b"[:lower:]": b"a-z",
    b"[:space:]": rb"\s",
    b"[:xdigit:]": b"0-9A-Fa-f",
}
_FIXED = {
    b"**/": b"(?:.*/)?",
    b"/**": b"/.*",
    b"/**/": b"/(?:.*/)?",
    b"?": b"[^/]",
}


def _translated(text: bytes) -> bytes:
    return b"".join(_translated_token(token) for token in _TOKEN.findall(text))


def _translated_token(token: bytes) -> bytes:
    if token in _FIXED:
        return _FIXED[token]
    if token.startswith(b"*"):
        return b"[^/]*"
    if token.startswith(b"\\") and len(token) > 1:
        return re.escape(token[1:])
    if token.startswith(b"[") and len(token) > 1:
        return _translated_class(token)
    return re.escape(token)


def _translated_class(token: bytes) -> bytes:
    inside = token[1:-1]
    is_negated = inside[:1] in (b"!", b"^")
    inside = inside[1:] if is_negated else inside
    for name, members in _CLASSES.items():
        inside = inside.replace(name, members)
    inside = inside.replace(b"[", rb"\[")
    inside = rb"\]" + inside[1:] if inside.startswith(b"]") else inside
    return (b"(?!/)[^" if is_negated else b"(?!/)[") + inside + b"]"
