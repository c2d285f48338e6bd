"""The programs that are compared, and how each is called at its documented defaults.

Ours and the peers encrypt and compress; no call asks any of them for less than its default.
Source: restic and borg documentation, spec/cli.md. Start at `PROGRAMS`.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

PASSPHRASE = "correct horse battery staple"  # noqa: S105 - of repositories that a bench throws away


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where one program works: its repository, its own home, the source and a restore."""

    program: str
    home: Path
    repository: Path
    source: Path
    restored: Path
    number: int = 0

    def tree(self) -> Path:
        """Return where the source lies after a restore."""
        return self.restored / str(self.source).lstrip("/")


Arguments = Callable[[Site], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program: arguments for each step, and its environment."""

    name: str
    defaults: str
    version: list[str]
    steps: Mapping[str, Arguments]
    environment: Callable[[Site], dict[str, str]]
    captures_databases: bool = False
    makes_destination: bool = False

    def command(self, step: str, site: Site) -> list[str]:
        """Return the call for a step; first, unchanged and day are the same call."""
        word = "backup" if step in ("first", "unchanged", "day") else step
        return [site.program, *self.steps[word](site)]


def _durarepo_environment(site: Site) -> dict[str, str]:
    return {
        "DURAREPO_REPO": str(site.repository),
        "DURAREPO_KEYS": str(site.home / "keys"),
        "DURAREPO_STATE": str(site.home / "state"),
    }


def _restic_environment(site: Site) -> dict[str, str]:
    return {
        "RESTIC_PASSWORD": PASSPHRASE,
        "RESTIC_REPOSITORY": str(site.repository),
        "RESTIC_CACHE_DIR": str(site.home / "cache"),
    }


def _borg_environment(site: Site) -> dict[str, str]:
    return {
        "BORG_PASSPHRASE": PASSPHRASE,
        "BORG_REPO": str(site.repository),
        "BORG_BASE_DIR": str(site.home),
    }


PROGRAMS = {
    "durarepo": Program(
        name="durarepo",
        defaults="all defaults",
        version=["--version"],
        steps={
            "init": lambda site: ["init", "--stream", "bench", "--root", str(site.source)],
            "backup": lambda _: ["snapshot", "-q"],
            "log": lambda _: ["log"],
            "verify": lambda _: ["verify", "-q", "--data"],
            "restore": lambda site: ["checkout", "-q", "--scratch", str(site.restored)],
        },
        environment=_durarepo_environment,
        captures_databases=True,
        makes_destination=True,
    ),
    "restic": Program(
        name="restic",
        defaults="repository version 2, compression auto",
        version=["version"],
        steps={
            "init": lambda _: ["init", "-q", "--repository-version", "2"],
            "backup": lambda site: ["backup", "-q", str(site.source)],
            "log": lambda _: ["snapshots"],
            "verify": lambda _: ["check", "-q", "--read-data"],
            "restore": lambda site: ["restore", "-q", "latest", "--target", str(site.restored)],
        },
        environment=_restic_environment,
    ),
    "borg": Program(
        name="borg",
        defaults="repokey-blake2, compression zstd",
        version=["--version"],
        steps={
            "init": lambda _: ["init", "-e", "repokey-blake2"],
            "backup": lambda site: ["create", "-C", "zstd", f"::a{site.number}", str(site.source)],
            "log": lambda _: ["list"],
            "verify": lambda _: ["check", "--verify-data"],
            "restore": lambda site: ["extract", f"::a{site.number}"],
        },
        environment=_borg_environment,
    ),
}
"""By name, in the order of a first round."""

OURS = "durarepo"


def find_program(name: str, given: Mapping[str, str]) -> str:
    """Return the path of a program: the one that was given, else the one of PATH.

    Raises:
        ValueError: there is none.
    """
    path = given.get(name) or shutil.which(name)
    if path is None:
        raise ValueError(f"no program '{name}': name it with --program {name}=PATH")
    return str(Path(path).absolute())


def environment_of(program: Program, site: Site) -> dict[str, str]:
    """Return all of a child's environment: nothing of the caller's but PATH."""
    shared = {
        "PATH": os.environ["PATH"],
        "HOME": str(site.home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(site.home),
    }
    return shared | program.environment(site)
