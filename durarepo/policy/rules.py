"""What an exclusion rule is: its id, the word of the clause it serves, why, and after whom.

Values only. The rules themselves stand in `path_table`, `content_table` and `sqlite_table`;
what they mean for a name or for bytes is in `pathrules` and `contentrules`.
Source: AICEP 10.5.2, spec/exclusion.md. Start at `Rule`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """When a rule decides: before a file is opened, on its bytes, or on a part of them."""

    PATH = "path"
    CONTENT = "content"
    STRUCTURED = "structured"


class Decision(StrEnum):
    """What becomes of a file."""

    INCLUDE = "include"
    EXCLUDE = "exclude"
    REDACT = "redact"


class Word(StrEnum):
    """The words of the clause; each rule serves one."""

    CREDENTIALS = "credentials"
    API_KEYS = "API keys"
    TOKENS = "tokens"
    COOKIES = "cookies"
    PASSWORDS = "passwords"
    PRIVATE_KEYS = "private keys"
    ENVIRONMENT = "environment files"
    CACHES = "caches"
    ENVIRONMENTS = "virtual environments"
    DEPENDENCIES = "dependency folders"


REBUILDABLE = frozenset({Word.CACHES, Word.ENVIRONMENTS, Word.DEPENDENCIES})
"""What is left out because it can be made again, not because it is secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What every rule tells of itself."""

    id: str
    word: Word
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRule(Rule):
    """Names that are left out before anything is opened.

    A pattern is the tail of a path, its parts compared whole after folding; ``*`` and ``?``
    stay within a part. ``files`` are for all but directories, ``folders`` for directories.
    ``unless`` are patterns of last parts that the rule does not mean. An ``exact`` rule compares
    names as they are written, for names that in other letters could be somebody's work.
    """

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRule(Rule):
    """A folder that is left out for what lies in it or beside it, never for its name alone.

    ``names`` are patterns of its name. All of ``inside`` must be there, or any of ``any_inside``,
    or any of ``beside``. ``signature`` is how the first of ``any_inside`` must begin.
    """

    names: tuple[str, ...] = ("*",)
    inside: tuple[str, ...] = ()
    any_inside: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    signature: bytes = b""


class Scope(StrEnum):
    """How much of a file a content rule takes with it."""

    WHOLE = "whole"  # the file goes
    SPAN = "span"  # the value goes, where the form of the file is certain
    CONFIGURATION = "configuration"  # the value, and only in a configuration file


class Check(StrEnum):
    """What is asked of a match beyond its pattern; see `contentrules`."""

    NONE = "none"
    BASE64 = "base64"
    JWK = "jwk"
    FILLED = "filled"
    RANDOM = "random"
    PASSWORD = "password"  # noqa: S105 - the name of a check
    BASIC = "basic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRule(Rule):
    """Bytes that are not kept.

    ``probe`` is what an engine looks for, without look-around; it holds wherever ``pattern``
    holds. ``at_start`` rules are for the first bytes of a file and have no probe. A pattern with a
    ``prefix`` begins with it, and there a word has to begin, unless it ``is_distinct``: no word
    holds it by chance. ``pattern`` confirms; its group ``secret``,
    or all of it, is the value. Rules for configuration have none: their values are found by the
    form of the file (`leaves`).
    """

    probe: str
    pattern: str
    scope: Scope
    check: Check = Check.NONE
    at_start: bool = False
    prefix: str = ""
    is_distinct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRule(Rule):
    """Rows of a SQLite database: what is deleted, or which text cells lose their spans.

    The rule holds for databases with ``table`` and ``columns``, whose file name fits ``names``.
    ``where`` chooses rows; with ``redact`` a column is rewritten instead of its row deleted.
    ``whole`` leaves the database out as such.
    """

    names: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    where: str = ""
    redact: str = ""
    whole: bool = False
