"""Marked folders from outside: nothing new in them goes unseen, and real ones keep quiet."""

import hashlib
import os
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path

import pytest

from durarepo.source.marked import Look, look_at
from tests.doubles.children import UNPRIVILEGED, let_others_pass, run_in_child
from tests.machines.stream import fill


def looked(folder: Path, before: Look | None = None, *, rule: str = "mark-cachedir") -> Look:
    """Look at a folder, which held what was looked at before."""
    known = None if before is None else before.shapes
    return look_at(bytes(folder), rule, known=known)


@pytest.mark.parametrize(
    "name",
    [
        *("notes.txt", "rows.csv", "plan.json", "page.html", "plan", ".hidden", "photo.jpg"),
        *("doc/page.html", "package/list.json", "tmp/plan.txt", "debug/deps/notes.md"),
        *("lib/python3.11/site-packages/mine/chapter.py", "__pycache__/chapter.pyc"),
        *("d41d8cd98f00b204e9800998ecf8427e.txt", "2031-05-17.log", "a/b/c/notes2.txt"),
        *("/".join(["deep"] * 200) + "/notes.txt", "ab/cd/ef/rows.csv"),
    ],
)
@pytest.mark.parametrize("rule", ["mark-cachedir", "mark-pyvenv", "mark-target", "mark-vendor"])
def test_a_file_of_a_new_name_is_seen_wherever_it_lies(
    tmp_path: Path, rule: str, name: str
) -> None:
    """A suffix or a place that is never looked at is where work would be hidden."""
    fill(tmp_path, {"a/b/c/notes1.txt": b"1", "tmp/x": b"2", "doc/index.html": b"3"})
    before = looked(tmp_path, rule=rule)
    assert looked(tmp_path, before, rule=rule).folder.grown == 0

    fill(tmp_path, {name: b"mine"})

    assert looked(tmp_path, before, rule=rule).folder.grown == 1


def test_a_real_environment_keeps_quiet_while_packages_come_and_are_used(tmp_path: Path) -> None:
    """A warning each night is one that nobody reads."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    before = looked(tmp_path / "env", rule="mark-pyvenv")
    wheel = tmp_path / "tidy-1.0-py3-none-any.whl"
    make_wheel(wheel)
    python = tmp_path / "env" / "bin" / "python"

    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-index", wheel],
        check=True,
        env={"HOME": str(tmp_path), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    subprocess.run([python, "-c", "import tidy, wsgiref.util"], check=True)

    after = looked(tmp_path / "env", before, rule="mark-pyvenv").folder
    assert after.files > before.folder.files
    assert (after.grown, after.works) == (0, 0)


def make_wheel(path: Path) -> None:
    """Make a package with a module, a data file and a command."""
    info = "tidy-1.0.dist-info"
    files = {
        "tidy/__init__.py": "def main():\n    pass\n",
        "tidy/words.txt": "a\nb\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tidy\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntidy = tidy:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def test_a_cache_that_grows_by_names_of_hashes_keeps_quiet(tmp_path: Path) -> None:
    """Names that a program makes up are what a cache is made of."""
    first, later = (
        {
            f"{digest[:2]}/{digest[2:]}-d": b"",
            f"http/{digest[0]}/{digest[1]}/{digest}.body": b"",
            f"objects/{uuid.UUID(digest[:32])}/index.bin": b"",
        }
        for digest in (hashlib.sha256(word).hexdigest() for word in (b"one", b"two"))
    )
    fill(tmp_path, first)
    before = looked(tmp_path)

    fill(tmp_path, later)

    after = looked(tmp_path, before).folder
    assert (after.files, after.grown) == (6, 0)


def test_what_a_compiler_wrote_is_no_work(tmp_path: Path) -> None:
    """A day of building makes a hundred new names."""
    fill(tmp_path, {"classes/A.class": b"\xca\xfe\xba\xbe1"})
    before = looked(tmp_path, rule="mark-target")

    fill(tmp_path, {"classes/B.class": b"\xca\xfe\xba\xbe2", "classes/C.class": b"my chapter"})
    os.symlink("classes/B.class", tmp_path / "link")

    assert looked(tmp_path, before, rule="mark-target").folder.grown == 2


def test_a_folder_that_is_too_deep_to_be_listed_counts_as_work(tmp_path: Path) -> None:
    """What nobody can look into is where one would hide something."""
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir(b"d" * 250, dir_fd=folder)
        inner = os.open(b"d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)

    assert looked(tmp_path).folder.works == 1


def test_a_folder_that_may_not_be_listed_counts_as_work(tmp_path: Path) -> None:
    """An agent could close its folder before each snapshot."""
    folder = tmp_path / "cache"
    fill(folder, {"closed/notes.txt": b"mine"})
    (folder / "closed").chmod(0)
    let_others_pass(folder)

    def work() -> None:
        assert looked(folder).folder.works == 1

    run_in_child(work, user=UNPRIVILEGED)


@pytest.mark.parametrize("kind", ["fifo", "link", "large"])
def test_a_list_of_a_package_that_is_no_small_file_lists_nothing(tmp_path: Path, kind: str) -> None:
    """A run must not wait for a pipe, follow a link, or read for ever."""
    info = tmp_path / "site-packages" / "mine.dist-info"
    fill(info, {"METADATA": b""})
    before = looked(tmp_path, rule="mark-pyvenv")
    record, row = info / "RECORD", b"mine.txt,,\n"
    if kind == "fifo":
        os.mkfifo(record)
    elif kind == "link":
        fill(tmp_path.parent, {"list": row})
        os.symlink(tmp_path.parent / "list", record)
    else:
        with open(record, "wb") as file:
            file.truncate(33 << 20)
            file.seek(33 << 20)
            file.write(b"\n" + row)
    fill(tmp_path, {"site-packages/mine.txt": b"mine"})

    assert looked(tmp_path, before, rule="mark-pyvenv").folder.grown == 2
