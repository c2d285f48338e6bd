"""The one error tree. Each class has a stable code family; each raise names a full code.

    DurarepoError
    ├── ConfigurationError      config.*              what was asked for cannot be accepted
    │   └── SelectionError      select.*              no such sequence, path or component
    ├── RepositoryStateError    repository.*          none here, or of an unknown version
    ├── RunError                run.*                 locked, budget spent
    ├── KeyMaterialError        keys.*                refused, missing, not the pinned package
    ├── SourceError             source.*              a file that should be read cannot be
    │   └── VanishedError       source.vanished       gone before it was opened: no omission
    ├── StoreError              store.*               the repository or state cannot be used
    │   └── RemoteError         remote.*              a remote cannot be used
    ├── IntegrityError          integrity.*           bytes are wrong
    ├── TrustError              trust.*               not signed, not ours, not the newest
    │   └── FreshnessError      fresh.*               expired, revoked, clock behind
    └── PolicyRefusedError      policy.*              refused on purpose

A source error and a store error never change places (law 6). The message may change, the code
may not. Every code has a row in spec/errors.md; a test compares both ways.
Messages are lower case without a full stop and never hold a key or a secret.
"""

PUT_BACK = "put the file under objects/ back from a copy of the repository"
"""The hint where a stored object is gone or damaged."""


class DurarepoError(Exception):
    """Base of all that durarepo raises on purpose.

    Attributes:
        code: stable, dotted, lower case; ``family.reason``.
        message: one line for a person: what failed, the subject quoted, expected and found.
        hint: one line saying what to do next; may be empty.
    """

    family = ""

    def __init__(self, reason: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.code = f"{self.family}.{reason}"
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"


class ConfigurationError(DurarepoError):
    """The call or stream.toml cannot be accepted."""

    family = "config"


class SelectionError(ConfigurationError):
    """No such sequence, path or component."""

    family = "select"


class RepositoryStateError(DurarepoError):
    """There is no repository here, or this version cannot read it."""

    family = "repository"


class RunError(DurarepoError):
    """This run cannot go on: another holds the lock, or the time budget is spent."""

    family = "run"


class KeyMaterialError(DurarepoError):
    """Key material is refused, missing or malformed, or the crypto package is another one."""

    family = "keys"


class SourceError(DurarepoError):
    """Something that should be backed up cannot be read."""

    family = "source"


class VanishedError(SourceError):
    """A name that was listed is gone before it could be opened; this is no omission."""


class StoreError(DurarepoError):
    """The local repository or state cannot be read or written."""

    family = "store"


class RemoteError(StoreError):
    """A remote failed after retries, or is not safe to use."""

    family = "remote"


class IntegrityError(DurarepoError):
    """Stored bytes are not what they have to be."""

    family = "integrity"


class TrustError(DurarepoError):
    """Well-formed bytes that are not to be trusted: registry, signature, chain."""

    family = "trust"


class FreshnessError(TrustError):
    """Expired or revoked at the live time, or a clock behind its high-water."""

    family = "fresh"


class PolicyRefusedError(DurarepoError):
    """Possible, and refused on purpose."""

    family = "policy"
