"""What a remote really does is found out by trying it, with real servers and with bad ones."""

from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.errors import RemoteError
from durarepo.core.secret import Secret
from durarepo.store.capabilities import Can, Capabilities, check_folder
from durarepo.store.folder import FolderRemote
from durarepo.store.retrying import Patience, SystemWaits
from durarepo.store.servercheck import check_server
from tests.doubles.bad_server import DOUBTS, FAULTS, FORBIDS, bad_server
from tests.doubles.servers import QuickWaits, Server

GOOD = {
    "create_only", "no_overwrite", "no_delete", "whole_or_nothing", "checks_digest",
    "reports_digest", "range", "lists", "tells_time",
}  # fmt: skip


class ShortWaits(SystemWaits):
    """Waits that do pass, but are a tenth as long."""

    def wait(self, seconds: float) -> None:
        """Come back after a tenth of that."""
        super().wait(seconds / 10)


def check(server: Server, scope: str = "b", *, waits: SystemWaits | None = None) -> Capabilities:
    """Check a server, with waits that pass."""
    waits = waits or ShortWaits()
    return check_server(server.transport(scope, waits=waits), Patience(waits=waits))


def missing(found: Capabilities) -> set[str]:
    """Return what a server was found not to do."""
    return {name for name, value in found.record().items() if value == Can.NO.value}


def test_the_mirror_does_all_that_can_be_tried(mirror: Server) -> None:
    """What the project ships has to pass its own check, or the check is of no use."""
    found = check(mirror, mirror.next_scope())

    assert missing(found) == set()
    assert {name for name, value in found.record().items() if value == "yes"} == GOOD
    assert found.one_winner is Can.UNKNOWN


def test_nginx_is_write_once_and_whole_and_knows_no_digest(nginx: Server) -> None:
    """A plain server that was set up as the specification says; what it lacks has to be known."""
    found = check(nginx, nginx.next_scope())

    assert missing(found) - {"one_winner"} == {"checks_digest", "reports_digest", "lists"}
    assert found.create_only is found.no_overwrite is found.no_delete is Can.YES
    assert found.whole_or_nothing is found.range is Can.YES


def test_a_folder_creates_only_and_protects_nothing(tmp_path: Path) -> None:
    """Who can write into a folder can also take away; nobody may think otherwise."""
    with closing(FolderRemote(bytes(tmp_path))) as remote:
        found = check_folder(remote)

    assert found.create_only is found.whole_or_nothing is found.range is found.lists is Can.YES
    assert found.no_overwrite is found.no_delete is found.lock is Can.NO


def test_a_server_without_faults_lacks_nothing(tmp_path: Path) -> None:
    """If the double had a fault by accident, the tests of faults would prove nothing."""
    with bad_server(tmp_path) as (server, _):
        found = check(server)

    assert missing(found) == set()


@pytest.mark.parametrize("word", FORBIDS)
def test_a_refusal_in_other_words_is_one(tmp_path: Path, word: str) -> None:
    """Real write-once servers answer 403 or 409; they are not broken, and not busy."""
    with bad_server(tmp_path, word) as (server, _):
        found = check(server)

    assert missing(found) == set()
    assert found.create_only is found.no_overwrite is Can.YES


@pytest.mark.parametrize(("doubt", "capability"), DOUBTS.items())
def test_what_shows_nothing_is_not_taken_for_a_capability(
    tmp_path: Path, doubt: str, capability: str
) -> None:
    """A server that is busy for a minute would count as write-once or whole for ever."""
    waits = SystemWaits() if "slow" in doubt else ShortWaits()
    with bad_server(tmp_path, doubt) as (server, _):
        found = check(server, waits=waits)

    assert found.record()[capability] == "unknown"
    assert missing(found) == set()


@pytest.mark.parametrize(("fault", "capability"), FAULTS.items())
def test_a_fault_is_found_out(tmp_path: Path, fault: str, capability: str) -> None:
    """A store that was believed to be write-once, whole or truthful loses the only copy."""
    with bad_server(tmp_path, fault) as (server, _):
        found = check(server)

    assert capability in missing(found)


def test_a_torn_object_whose_digest_is_claimed_is_found_out(tmp_path: Path) -> None:
    """The worst of them: half the bytes under the final name, and the digest of the whole."""
    with bad_server(tmp_path, "publishes-torn", "reports-what-was-claimed") as (server, _):
        found = check(server)

    assert {"whole_or_nothing", "reports_digest", "checks_digest"} <= missing(found)


def test_only_objects_of_the_check_itself_are_touched(tmp_path: Path) -> None:
    """The check deletes and overwrites where it can: never what somebody else put there."""
    kept = "ab" * 32
    with bad_server(tmp_path, "deletes", "overwrites", "ignores-condition") as (server, behaviour):
        behaviour.objects[kept] = b"somebody's only copy"
        check(server)

    assert behaviour.objects[kept] == b"somebody's only copy"
    touched = [one for one in behaviour.asked if one.method in {"PUT", "DELETE"}]
    assert not [one for one in touched if kept in one.path]
    assert {len(one.body) for one in touched if one.method == "PUT" and one.body} <= {32768, 16384}


def test_a_server_that_gives_nothing_back_cannot_be_used(tmp_path: Path) -> None:
    """A check that passes on a server that loses everything would be worse than none."""
    with bad_server(tmp_path) as (server, behaviour):
        behaviour.answers += [(201, {})]
        with pytest.raises(RemoteError) as caught:
            check(server)

    assert caught.value.code == "remote.answer"


def test_refused_credentials_are_told_as_such(mirror: Server) -> None:
    """A wrong token must not look like a server without capabilities."""
    transport = mirror.transport(mirror.next_scope(), token=Secret(b"Bearer wrong"))

    with pytest.raises(RemoteError) as caught:
        check_server(transport, Patience(waits=QuickWaits()))

    assert caught.value.code == "remote.refused"


def test_a_record_comes_back_as_it_was_written() -> None:
    """What was found is written down once and believed later."""
    found = Capabilities(create_only=Can.YES, no_delete=Can.NO)

    assert Capabilities.of_record(found.record()) == found
    assert Capabilities.of_record({"create_only": "surely", "new": "yes"}) == Capabilities()
