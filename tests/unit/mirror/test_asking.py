"""What a request asks for: bytes of a stranger become a checked value or a status."""

import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.mirror.asking import (
    Ask,
    RefusedRequestError,
    fields_of,
    parse_ask,
    parse_range,
    parse_upload,
)

NAME = "ab" * 32
PATH = f"/notes/ab/{NAME}".encode()
DIGEST = b"sha-256=:" + base64.b64encode(bytes(32)) + b":"


def status_of(method: str, path: bytes, query: bytes = b"") -> int:
    """Return with what a request is refused; 0 where it is not."""
    try:
        parse_ask(method, path, query, {})
    except RefusedRequestError as error:
        return error.status
    return 0


def test_an_object_a_listing_and_the_metrics_are_all_there_is() -> None:
    """Three kinds of path, and what each may be asked for."""
    for method in ("GET", "HEAD", "PUT"):
        assert parse_ask(method, PATH, b"", {}).name == NAME
    assert parse_ask("GET", b"/notes/", b"after=" + NAME.encode(), {}).after == NAME
    assert parse_ask("GET", b"/metrics", b"", {}) == Ask(
        method="GET", scope="", name=None, after="", fields={}
    )


@pytest.mark.parametrize(
    "path",
    [
        b"", b"/", b"/notes", b"//", b"/notes/ab", b"/notes/ab/", b"/notes/ab/" + b"g" * 64,
        b"/notes/ab/" + b"AB" * 32, b"/notes/cd/" + NAME.encode(), b"/Notes/ab/" + NAME.encode(),
        b"/../ab/" + NAME.encode(), b"/./ab/" + NAME.encode(), b"/-/ab/" + NAME.encode(),
        b"/notes/../notes/ab/" + NAME.encode(), PATH + b"/", PATH + b"\n", PATH + b"%00",
        b"/n%6ftes/ab/" + NAME.encode(), b"/" + b"n" * 64 + b"/ab/" + NAME.encode(),
        b"/notes/ab/" + NAME.encode() + b".1", b"/notes/lock",
    ],
)  # fmt: skip
def test_any_other_path_is_not_found(path: bytes) -> None:
    """A path from outside becomes the path of a file only if it is exactly one of ours."""
    assert status_of("GET", path) == 404


@pytest.mark.parametrize(
    "method",
    [
        "DELETE",
        "POST",
        "PATCH",
        "MOVE",
        "COPY",
        "MKCOL",
        "PROPFIND",
        "LOCK",
        "OPTIONS",
        "TRACE",
        "",
    ],
)
def test_there_is_no_other_method(method: str) -> None:
    """No verb deletes, moves or replaces (A4f)."""
    assert status_of(method, PATH) == 405


@pytest.mark.parametrize("method", ["PUT", "HEAD", "DELETE"])
def test_a_listing_can_only_be_read(method: str) -> None:
    """A PUT on the base would be a file that is no object."""
    assert status_of(method, b"/notes/") == 405
    assert status_of(method, b"/metrics") == 405


@pytest.mark.parametrize("query", [b"after=", b"after=x", b"x=1", b"after=" + b"AB" * 32, b"&"])
def test_a_query_that_is_none_of_ours_is_not_found(query: bytes) -> None:
    """What is not understood is not guessed at."""
    assert status_of("GET", b"/notes/", query) == 404
    assert status_of("GET", PATH, b"after=" + NAME.encode()) == 404


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({b"content-length": b""}, 411), ({b"content-length": b"-1"}, 411),
        ({b"content-length": b"1, 1"}, 411), ({b"transfer-encoding": b"chunked"}, 411),
        ({b"content-length": b"%d" % (PACK_MAX_BYTES + 1)}, 413),
        ({b"content-type": b"text/html"}, 415), ({b"content-encoding": b"gzip"}, 415),
        ({b"content-digest": b""}, 400), ({b"content-digest": b"sha-512=:AAAA:"}, 400),
        ({b"content-digest": b"sha-256=:AAAA:"}, 400),
    ],
)  # fmt: skip
def test_what_a_put_says_of_its_body_has_to_be_whole(
    changed: dict[bytes, bytes], status: int
) -> None:
    """Without length and digest nobody can tell a torn body from a whole one."""
    fields = {b"content-length": b"5", b"content-digest": DIGEST, **changed}

    with pytest.raises(RefusedRequestError) as caught:
        parse_upload(fields)

    assert caught.value.status == status


def test_a_put_that_says_all_is_taken() -> None:
    """Also with the digest behind another one."""
    fields = {
        b"content-length": b"%d" % PACK_MAX_BYTES,
        b"content-digest": b"sha-512=:AAAA:, " + DIGEST,
        b"content-type": b"application/octet-stream",
    }

    upload = parse_upload(fields)

    assert (upload.size, upload.digest) == (PACK_MAX_BYTES, bytes(32))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"bytes=0-0", (0, 0)), (b"bytes=3-5", (3, 5)), (b"bytes=3-", (3, 9)),
        (b"bytes=3-99", (3, 9)), (b"bytes=9-9", (9, 9)), (b"", None), (b"bytes=-3", None),
        (b"bytes=0-1,3-4", None), (b"bytes=5-3", None), (b"lines=0-1", None),
    ],
)  # fmt: skip
def test_a_range_is_taken_as_http_says(text: bytes, expected: tuple[int, int] | None) -> None:
    """What is no single range from the front gets all of the object."""
    assert parse_range({b"range": text}, 10) == expected


@pytest.mark.parametrize(("text", "size"), [(b"bytes=10-", 10), (b"bytes=0-0", 0)])
def test_a_range_beyond_the_end_is_told(text: bytes, size: int) -> None:
    """An empty answer would look like a short object."""
    with pytest.raises(RefusedRequestError) as caught:
        parse_range({b"range": text}, size)

    assert caught.value.status == 416


def test_a_field_that_stands_twice_is_not_half_read() -> None:
    """Two lengths or two tokens: neither is picked in silence."""
    fields = fields_of([(b"Content-Length", b"1"), (b"content-length", b"2")])

    assert fields == {b"content-length": b"1, 2"}


@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "DELETE"]),
    path=st.binary(max_size=120),
    query=st.binary(max_size=90),
    values=st.lists(st.binary(max_size=60), min_size=4, max_size=4),
)
def test_no_bytes_raise_anything_but_a_refusal(
    method: str, path: bytes, query: bytes, values: list[bytes]
) -> None:
    """A parser that breaks on a stranger's bytes is a server that can be switched off."""
    names = (b"range", b"content-length", b"content-digest", b"content-type")
    fields = dict(zip(names, values, strict=True))
    with contextlib.suppress(RefusedRequestError):
        parse_ask(method, path, query, fields)
    with contextlib.suppress(RefusedRequestError):
        asked = parse_ask(method, b"/notes/" + path, query, fields)
        assert asked.scope == "notes"
        assert asked.after in query.decode("latin-1")
    with contextlib.suppress(RefusedRequestError):
        assert parse_upload(fields).size <= PACK_MAX_BYTES
    with contextlib.suppress(RefusedRequestError):
        assert (parse_range(fields, 10) or (0, 9))[1] < 10
