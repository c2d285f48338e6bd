"""What left the backup for its content is told once, by name."""

import os
import string
from pathlib import Path
from random import SystemRandom

import pytest

from tests.machines.stream import Stream, fill


def _token() -> bytes:
    letters = string.ascii_letters + string.digits
    return b"ghp_" + "".join(SystemRandom().choices(letters, k=36)).encode()


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give a stream with a file that is kept, and one left out by its name."""
    stream = Stream(tmp_path)
    fill(stream.root, {"tool.py": b"print(1)\n", ".env": b"x"})
    return stream


def test_a_file_that_leaves_for_its_content_is_told_by_name_and_once(stream: Stream) -> None:
    """Work into which a token was pasted would leave the backup without a word."""
    before = stream.snapshot()
    (stream.root / "tool.py").write_bytes(b'TOKEN = "%s"\n' % _token())

    first, second = stream.snapshot(), stream.snapshot()

    assert before.newly_left == ()
    assert [one.path for one in first.newly_left] == [bytes(stream.root / "tool.py")]
    assert first.newly_left[0].rule == "token-github"
    assert second.newly_left == ()
    assert second.excluded == first.excluded


def test_a_file_that_came_back_is_told_again_when_it_leaves(stream: Stream) -> None:
    """The second time is as easily overlooked as the first."""
    for content in (b'T = "%s"\n' % _token(), b"T = None\n"):
        (stream.root / "tool.py").write_bytes(content)
        stream.snapshot()
    (stream.root / "tool.py").write_bytes(b'T = "%s"\n' % _token())

    assert [one.path for one in stream.snapshot().newly_left] == [bytes(stream.root / "tool.py")]


def test_a_path_that_holds_a_secret_is_told_by_its_short_id(stream: Stream) -> None:
    """The warning must not print what the policy keeps out."""
    secret = _token()
    folder = stream.root / secret.decode()
    os.mkdir(folder)
    (stream.root / "link").symlink_to(secret.decode())

    told = stream.snapshot().newly_left

    assert [one.path for one in told] == [bytes(stream.root / "link")]
    assert all(secret not in one.path for one in told)


def test_without_the_catalogue_everything_is_told_again(stream: Stream) -> None:
    """To be told twice is harmless; never to be told is not."""
    (stream.root / "tool.py").write_bytes(b'T = "%s"\n' % _token())
    stream.snapshot()
    stream.lose(catalog=True)

    assert len(stream.snapshot().newly_left) == 1
