"""Names as rules compare them: folded, and freed of what editors and copies add.

`.SSH` and a full-width `.ssh` are the same name to whoever looks for a key, and `.netrc~` is
the same file an hour ago. Pure text. Source: Unicode Standard Annex 15 (NFKC) and 3.13 (case
folding), spec/exclusion.md 2. Start at `folded`.
"""

import re
import unicodedata

_DECORATION = re.compile(
    r"""(?:
      ~ | \#
    | \.(?:bak|backup|bkp|bk|old|orig|save|saved|copy|tmp|temp|prev|previous|rej|lock|new
        |corrupt|corrupted|broken|conflict)(?:[._-]?[0-9][0-9t:_.z-]*|[._-][0-9a-f]{3,40})?
    | [._-](?:bak|backup|old|orig|copy|save)(?:[._-]?[0-9]+)?
    | \.sw[a-px] | \.un~
    | \.(?:[0-9]{1,20}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}[0-9t:_.z-]*)
    | \.(?=[a-f]*[0-9])[0-9a-f]{6,64}
    | [ ]copy(?:[ ][0-9]+)? | [ ]?\([0-9]+\) | [ ]\(copy\)
    | -wal | -shm | -journal
    )\Z""",
    re.VERBOSE,
)
_ENDINGS = (
    *("~", "#", ")", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "z"),
    *("a", "b", "c", "d", "e", "f", "corrupt", "corrupted", "broken", "conflict"),
    *("bak", "backup", "bkp", "bk", "old", "orig", "save", "saved", "copy", "tmp", "temp"),
    *("prev", "previous", "rej", "lock", "new", "-wal", "-shm", "-journal"),
    *(".sw" + letter for letter in "abcdefghijklmnopx"),
)
"""How every decorated name ends; asked first, since nearly no name does."""

_COPIED = re.compile(
    r"(?<=[^._ -])(?:[._ -](?:bak|backup|bkp|old|orig|original|copy|save|saved|prev|previous|tmp)"
    r"(?:[._ -]?[0-9]{1,14})?|[ ]?\([0-9]+\)|[ ]\(copy\))(?=\.[a-z0-9]{1,12}\Z)"
)
"""The same before the suffix, where file managers and people put it."""

_BEGINNINGS = (".#", "#")

_STEPS_MAX = 4


def text_of(name: bytes) -> str:
    """Return a name as text; bytes that are no UTF-8 are kept apart, never dropped."""
    return name.decode("utf-8", "surrogateescape")


def folded(text: str) -> str:
    """Return a name in the form in which rules compare names."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def undecorated(name: str) -> tuple[str, ...]:
    """Return a folded name and what it is a copy of: ``.env.bak`` is also ``.env``.

    Editors put ``.NAME.swp``, ``.#NAME`` and ``#NAME#`` beside a file; backups and copies
    append a word, a number or a date, or put it before the suffix.
    """
    found = [name]
    if not name.startswith(_BEGINNINGS) and not name.endswith(_ENDINGS):
        original = _COPIED.sub("", name)
        return (name,) if original == name else (name, original)
    while len(found) <= _STEPS_MAX:
        shorter = _step(found[-1])
        if shorter in ("", ".") or shorter == found[-1]:
            break
        found.append(shorter)
    original = _COPIED.sub("", found[-1])
    return tuple(found) if original == found[-1] else (*found, original)


def _step(name: str) -> str:
    if name.startswith(".#"):
        return name[2:]
    if not name.endswith(_ENDINGS):
        return name[1:] if name.startswith("#") else name
    match = _DECORATION.search(name)
    if match is None:
        return name[1:] if name.startswith("#") else name
    shorter = name[: match.start()]
    if match.group().startswith(".sw") and shorter.startswith("."):
        return shorter[1:]
    return shorter
