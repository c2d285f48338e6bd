"""Addresses of remotes: what is taken, and that all else is refused before anything is opened."""

import pytest

from durarepo.core.errors import ConfigurationError
from durarepo.store.remoteurl import FolderUrl, HttpsUrl, parse_remote_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "https://mirror.example/notes/",
            HttpsUrl(host="mirror.example", port=443, path="/notes/"),
        ),
        ("https://mirror.example", HttpsUrl(host="mirror.example", port=443, path="/")),
        (
            "https://mirror.example:8443/a/b",
            HttpsUrl(host="mirror.example", port=8443, path="/a/b/"),
        ),
        ("https://[::1]:1/x/", HttpsUrl(host="[::1]", port=1, path="/x/")),
        ("https://127.0.0.1/", HttpsUrl(host="127.0.0.1", port=443, path="/")),
        ("file:///mnt/disk/notes/", FolderUrl(path=b"/mnt/disk/notes")),
        ("file:///mnt/a b", FolderUrl(path=b"/mnt/a b")),
    ],
)
def test_an_address_is_taken_apart(text: str, expected: HttpsUrl | FolderUrl) -> None:
    """What is asked for has to be what is opened."""
    assert parse_remote_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "http://mirror.example/notes/",
        "HTTP://mirror.example/",
        "ftp://mirror.example/",
        "s3://bucket/prefix",
        "mirror.example/notes",
        "",
        "https://",
        "https:///notes",
        "https://user:pw@mirror.example/",
        "https://token@mirror.example/",
        "https://mirror.example/?token=x",
        "https://mirror.example/#x",
        "https://mirror.example/../etc",
        "https://mirror.example/a/./b",
        "https://mirror.example//a",
        "https://mirror.example/%2e%2e/",
        "https://mirror.example/a\nb",
        "https://mirror.example:0/",
        "https://mirror.example:70000/",
        "https://mirror.example:x/",
        "https://remote host/",
        "https://-x/",
        "https://" + "a" * 3000,
        "file://relative",
        "file://host/share",
        "file:///a/../b",
        "file:///a?x",
    ],
)
def test_any_other_address_is_refused_without_being_repeated(text: str) -> None:
    """``http://`` sends everything in the clear; a password in a URL ends up in logs (A4d)."""
    with pytest.raises(ConfigurationError) as caught:
        parse_remote_url(text)

    assert caught.value.code == "config.remote-url"
    assert "pw" not in str(caught.value)
    assert "token@" not in str(caught.value)
