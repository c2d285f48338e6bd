"""The servers that every contract is tried with; each runs once for all tests of a file."""

from collections.abc import Iterator

import pytest

from tests.doubles.servers import Server, mirror_server, nginx_server


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The project's own server, as a process, with TLS."""
    with mirror_server(tmp_path_factory.mktemp("mirror")) as server:
        yield server


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A plain server that was made write-once by its configuration."""
    with nginx_server(tmp_path_factory.mktemp("nginx")) as server:
        yield server
