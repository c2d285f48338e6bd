"""Paths judged in real trees: links, folded names, marks, stores of the home, ignore files."""
# ruff: noqa: RUF001 - full-width letters are what is tested

import os
import subprocess
from pathlib import Path

import pytest

from durarepo.policy.decide import ContentPolicy
from durarepo.policy.ignorefile import IGNORE_NAME
from durarepo.policy.scanner import open_engine
from durarepo.source.pathjudge import PathJudge
from durarepo.source.walk import Enter, WalkRules, walk

SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55\n"


def write(path: Path, data: bytes = b"x") -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def left_out(root: Path, home: Path | None = None) -> dict[str, str]:
    """Return what a walk of ``root`` leaves out: path below it, and rule."""
    top = os.path.realpath(bytes(root))
    judge = PathJudge(
        [top],
        home=None if home is None else bytes(home),
        contents=ContentPolicy(open_engine()),
    )
    found: dict[str, str] = {}
    for event in walk(top, rules=WalkRules(is_excluded=judge)):
        if isinstance(event, Enter):
            for name, rule in event.excluded:
                path = os.fsdecode(event.path + b"/" + name)
                found[os.path.relpath(path, os.fsdecode(top))] = rule
    return found


def test_other_letters_of_a_name_do_not_get_around(tmp_path: Path) -> None:
    """A key is as secret in a folder called .SSH, and in full-width letters."""
    write(tmp_path / "a" / ".SSH" / "ID_RSA")
    write(tmp_path / "b" / "\uff0eｎｅｔｒｃ")
    write(tmp_path / "c" / ".Env.Local")

    assert set(left_out(tmp_path)) == {"a/.SSH/ID_RSA", "b/\uff0eｎｅｔｒｃ", "c/.Env.Local"}


def test_a_hard_link_under_a_harmless_name_does_not_get_around(tmp_path: Path) -> None:
    """The inode counts, although the harmless name comes first in the walk."""
    secret = write(tmp_path / "z" / ".netrc")
    (tmp_path / "a").mkdir()
    os.link(secret, tmp_path / "a" / "notes.md")
    first = write(tmp_path / "a" / "first.md")
    os.link(first, tmp_path / "a" / "second.md")

    assert left_out(tmp_path) == {"a/notes.md": "store-login", "z/.netrc": "store-login"}


def test_a_hard_link_into_a_store_folder_does_not_get_around(tmp_path: Path) -> None:
    """What lies below an excluded folder is named as well."""
    secret = write(tmp_path / ".password-store" / "mail.gpg")
    os.link(secret, tmp_path / "a.bin")

    assert left_out(tmp_path) == {"a.bin": "store-login", ".password-store": "store-login"}


def test_packages_that_share_inodes_are_no_reason_to_leave_work_out(tmp_path: Path) -> None:
    """Package managers link files into node_modules; a linked source is still work."""
    source = write(tmp_path / "lib" / "index.js")
    (tmp_path / "node_modules").mkdir()
    os.link(source, tmp_path / "node_modules" / "index.js")

    assert left_out(tmp_path) == {"node_modules": "dependency-folder"}


def test_a_store_of_the_home_is_known_outside_the_roots(tmp_path: Path) -> None:
    """A bind mount or a link from the root to ~/.aws/credentials is the same inode."""
    home, root = tmp_path / "home", tmp_path / "root"
    secret = write(home / ".aws" / "credentials")
    key = write(home / ".ssh" / "id_work")
    root.mkdir()
    os.link(secret, root / "innocent.txt")
    os.link(key, root / "innocent.key")

    assert left_out(root, home) == {"innocent.txt": "store-cloud", "innocent.key": "key-ssh"}


def test_a_folder_of_the_home_with_the_name_of_a_store_is_work(tmp_path: Path) -> None:
    """Recipes in ``~/cookies/`` are no cookies; only a file of that name would be."""
    write(tmp_path / "cookies" / "oatmeal.md")
    write(tmp_path / "token.json" / "notes.md")
    write(tmp_path / ".netrc" / "notes.md")
    write(tmp_path / "deep" / "cookies")

    assert left_out(tmp_path, tmp_path) == {"deep/cookies": "cookie-file"}


def test_folders_are_left_out_for_what_lies_in_or_beside_them(tmp_path: Path) -> None:
    """A bare name says nothing; a mark does."""
    write(tmp_path / "tool" / "pyvenv.cfg")
    write(tmp_path / "conda" / "conda-meta" / "history")
    write(tmp_path / "big" / "CACHEDIR.TAG", SIGNATURE)
    write(tmp_path / "late" / "CACHEDIR.TAG", b" " + SIGNATURE)
    write(tmp_path / "crate" / "Cargo.toml")
    write(tmp_path / "crate" / "target" / "x")
    write(tmp_path / "plan" / "target" / "q3.md")
    write(tmp_path / "go" / "vendor" / "modules.txt")
    write(tmp_path / "sales" / "vendor" / "contract.md")

    assert left_out(tmp_path) == {
        "tool": "mark-pyvenv",
        "conda": "mark-conda",
        "big": "mark-cachedir",
        "crate/target": "mark-target",
        "go/vendor": "mark-vendor",
    }


def test_a_tag_that_is_a_pipe_blocks_nothing(tmp_path: Path) -> None:
    """Whoever plants a pipe must not stop the backup."""
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a" / "CACHEDIR.TAG")
    os.mkfifo(tmp_path / os.fsdecode(IGNORE_NAME))

    assert left_out(tmp_path) == {}


def test_ignore_files_add_exclusions_and_take_back_only_their_own(tmp_path: Path) -> None:
    """A file inside the data must never bring a secret back."""
    write(tmp_path / ".durarepoignore", b"*.tmp\n!keep.tmp\n!.env\n!.netrc\n/scratch/\n")
    write(tmp_path / "sub" / ".durarepoignore", b"!b.tmp\ndraft?.md\n")
    for name in ("a.tmp", "keep.tmp", ".env", "scratch/x", "sub/b.tmp", "sub/c.tmp"):
        write(tmp_path / name)
    for name in ("sub/.netrc", "sub/draft1.md", "sub/deep/draft2.md", "other/scratch/y"):
        write(tmp_path / name)

    assert left_out(tmp_path) == {
        ".env": "env-file",
        "a.tmp": "durarepoignore",
        "scratch": "durarepoignore",
        "sub/.netrc": "store-login",
        "sub/c.tmp": "durarepoignore",
        "sub/draft1.md": "durarepoignore",
        "sub/deep/draft2.md": "durarepoignore",
    }


PATTERNS = (
    *("*.log", "/top", "dir/", "a/b", "**/deep", "deep/**", "a/**/z", "!keep.log", "#no", r"\#yes"),
    *("x?y", "[a-c].md", "[!a-c].txt", "space\\ ", "trail  ", "*", "!*/", "[[:digit:]]x", "a*b/c"),
)
PATHS = (
    *("m.log", "keep.log", "s/m.log", "top", "s/top", "dir/f", "s/dir/f", "a/b", "s/a/b"),
    *("deep", "s/deep", "deep/q", "s/deep/q", "a/z", "a/1/z", "a/1/2/z", "#no", "#yes", "xzy"),
    *("x/y", "b.md", "d.md", "a.txt", "q.txt", "space ", "trail", "1x", "axb/c", "axb/d/c"),
)


@pytest.mark.parametrize("patterns", [*((one,) for one in PATTERNS), PATTERNS[:15], PATTERNS[5:]])
def test_ignore_patterns_mean_what_git_means(tmp_path: Path, patterns: tuple[str, ...]) -> None:
    """Whoever writes the file knows gitignore; a difference leaves out work, or does not."""
    text = "\n".join(patterns) + "\n"
    for name in PATHS:
        if not (tmp_path / name).exists() and not (tmp_path / name).parent.is_file():
            write(tmp_path / name)
    existing = [name for name in PATHS if (tmp_path / name).is_file()]
    (tmp_path / ".durarepoignore").write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text(text)

    asked = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(existing),
        text=True,
        capture_output=True,
        check=False,
    )
    ours = {path for path, rule in left_out(tmp_path).items() if rule == "durarepoignore"}
    ignored = {
        name for name in existing if any(name == o or name.startswith(o + "/") for o in ours)
    }

    assert ignored == {name for name in asked.stdout.split("\0") if name}
