"""`.durarepoignore`: what somebody who works in a folder leaves out of its backup.

The syntax is that of gitignore, and the files of deeper folders speak last. A ``!`` takes back
what such a file has left out and nothing else: no file inside the data ever brings back what
the policy leaves out.
Source: gitignore(5), spec/exclusion.md 7. Start at `parse_ignore`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from durarepo.policy.ignorepattern import compile_pattern

IGNORE_NAME = b".durarepoignore"
IGNORE_MAX_BYTES = 1024 * 1024
IGNORE_LINE_MAX_BYTES = 16 * 1024
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
    if not text or text.startswith(b"#") or len(text) > IGNORE_LINE_MAX_BYTES:
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
    matcher = compile_pattern(text, is_anchored=is_anchored)
    return None if matcher is None else IgnorePattern(matcher, is_taken_back, only_folders)


def _without_trailing_space(line: bytes) -> bytes:
    stripped = line.rstrip(b" ")
    is_escaped = (len(stripped) - len(stripped.rstrip(b"\\"))) % 2 == 1
    return stripped + b" " if is_escaped and len(stripped) < len(line) else stripped
