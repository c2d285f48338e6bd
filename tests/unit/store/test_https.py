"""What the client sends, and what it makes of answers, lost answers and lies."""

import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from durarepo.core.errors import DurarepoError, IntegrityError, RemoteError
from durarepo.core.limits import PACK_MAX_BYTES
from durarepo.core.names import ObjectName
from durarepo.core.secret import Secret
from durarepo.store.https import HttpsRemote
from durarepo.store.port import Put
from durarepo.store.retrying import Patience
from durarepo.store.transport import Pace
from tests.doubles.bad_server import Behaviour, bad_server
from tests.doubles.pki import Authority
from tests.doubles.relay import cutting_relay
from tests.doubles.servers import QuickWaits, Server

DATA = hashlib.shake_256(b"an object").digest(32 * 1024)
PACK = ObjectName(hashlib.sha256(DATA).hexdigest())
SLOT = ObjectName("5a" * 32)
FIXED = {"host", "user-agent", "accept-encoding", "authorization"}


@contextmanager
def opened(
    folder: Path, *faults: str, trusts_digest: bool = False
) -> Iterator[tuple[HttpsRemote, Behaviour, QuickWaits]]:
    """Give a remote on a server with faults, what the server saw, and the waits."""
    waits = QuickWaits()
    with bad_server(folder, *faults) as (server, behaviour):
        transport = server.transport("b", waits=waits, token=Secret(b"Bearer a-token"))
        patience = Patience(waits=waits)
        made = HttpsRemote(transport, patience=patience, trusts_digest=trusts_digest)
        with closing(made) as remote:
            yield remote, behaviour, waits


# --- what is sent ---


def test_requests_carry_nothing_that_describes(tmp_path: Path) -> None:
    """Every field tells the store something; these are all there may be (A4e)."""
    with opened(tmp_path) as (remote, behaviour, _):
        remote.put_new(SLOT, DATA)
        remote.read(SLOT, 5, 10)
        remote.stat(SLOT)
        list(remote.iter_names())

    allowed = {
        "HEAD": FIXED,
        "GET": FIXED | {"range"},
        "PUT": FIXED | {"content-length", "content-type", "content-digest", "if-none-match"},
    }
    assert {one.method for one in behaviour.asked} == {"HEAD", "GET", "PUT"}
    for one in behaviour.asked:
        assert set(one.fields) <= allowed[one.method]
        assert one.fields["user-agent"] == "durarepo"
        assert one.fields["accept-encoding"] == "identity"
        assert one.fields["authorization"] == "Bearer a-token"
        assert one.path in {f"/b/5a/{SLOT}", "/b/", f"/b/?after={SLOT}"}


def test_every_put_is_conditional_and_carries_its_digest(tmp_path: Path) -> None:
    """Without the condition a second writer overwrites; without the digest a flip stays."""
    with opened(tmp_path) as (remote, behaviour, _):
        remote.put_new(PACK, DATA)

    [put] = [one for one in behaviour.asked if one.method == "PUT"]
    assert put.fields["if-none-match"] == "*"
    assert put.fields["content-type"] == "application/octet-stream"
    assert put.fields["content-length"] == str(len(DATA))
    assert "transfer-encoding" not in put.fields
    assert put.fields["content-digest"].startswith("sha-256=:")
    assert put.body == DATA


@pytest.mark.parametrize(
    ("name", "methods"),
    [(PACK, ["HEAD", "PUT", "HEAD"]), (SLOT, ["HEAD", "PUT", "HEAD", "GET"])],
)
def test_an_object_is_looked_at_after_it_was_sent(
    tmp_path: Path, name: ObjectName, methods: list[str]
) -> None:
    """A slot is read back whole before it counts; a pack's size is looked at."""
    with opened(tmp_path) as (remote, behaviour, _):
        remote.put_new(name, DATA)

    assert [one.method for one in behaviour.asked] == methods


def test_what_is_there_is_not_sent_again(tmp_path: Path) -> None:
    """Twenty megabytes a night that are there already are twenty too many."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.objects[PACK] = DATA

        assert remote.put_new(PACK, DATA) is Put.ALREADY_THERE
    assert [one.method for one in behaviour.asked] == ["HEAD", "HEAD", "GET"]


def test_a_trusted_digest_saves_reading_a_pack_back(tmp_path: Path) -> None:
    """Only where the check found that the server tells the truth."""
    with opened(tmp_path, trusts_digest=True) as (remote, behaviour, _):
        behaviour.objects[PACK] = DATA

        assert remote.put_new(PACK, DATA) is Put.ALREADY_THERE
    assert [one.method for one in behaviour.asked] == ["HEAD", "HEAD"]


# --- lies and tears ---


@pytest.mark.parametrize("name", [PACK, SLOT])
def test_a_server_that_tears_silently_is_found_out(tmp_path: Path, name: ObjectName) -> None:
    """201 for a file that is shorter than what was sent: seen with a real server."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.answers += [(404, {}), (201, {})]
        behaviour.objects[name] = DATA[:1000]

        with pytest.raises(IntegrityError) as caught:
            remote.put_new(name, DATA)

    assert caught.value.code == "integrity.object-differs"


def test_a_server_that_says_stored_and_stores_nothing_is_found_out(tmp_path: Path) -> None:
    """An answer to a PUT counts for nothing."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.answers += [(404, {}), (201, {})]

        with pytest.raises(RemoteError) as caught:
            remote.put_new(PACK, DATA)

    assert caught.value.code == "remote.answer"


@pytest.mark.parametrize("answer", [201, 200, 204, 412])
def test_other_bytes_are_an_alarm_whatever_is_answered(tmp_path: Path, answer: int) -> None:
    """Who squats a slot must not be taken for our own manifest."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.answers += [(404, {}), (answer, {})]
        behaviour.objects[SLOT] = DATA[::-1]

        with pytest.raises(IntegrityError) as caught:
            remote.put_new(SLOT, DATA)

    assert caught.value.code == "integrity.object-differs"
    assert behaviour.objects[SLOT] == DATA[::-1]


def test_a_reported_digest_is_not_believed_unasked(tmp_path: Path) -> None:
    """A server that claims the right digest of wrong bytes must not get away with it."""
    with opened(tmp_path, "reports-the-name") as (remote, behaviour, _):
        behaviour.objects[PACK] = DATA[::-1]

        with pytest.raises(IntegrityError) as caught:
            remote.put_new(PACK, DATA)

    assert caught.value.code == "integrity.object-differs"


def test_a_slot_is_read_back_even_where_digests_are_trusted(tmp_path: Path) -> None:
    """A manifest counts as pushed only when its bytes came back (format 7)."""
    with opened(tmp_path, trusts_digest=True) as (remote, behaviour, _):
        remote.put_new(SLOT, DATA)

    assert behaviour.asked[-1].method == "GET"


# --- answers ---


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(tmp_path: Path, status: int) -> None:
    """A server that is restarted in the night costs a wait, not a copy."""
    with opened(tmp_path) as (remote, behaviour, waits):
        behaviour.answers += [(404, {}), (status, {"Retry-After": "3"})]

        assert remote.put_new(PACK, DATA) is Put.CREATED
    assert behaviour.objects[PACK] == DATA
    assert [pause >= 3 for pause in waits.waited] == [True]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "remote.refused"), (403, "remote.refused"), (413, "remote.full"),
        (507, "remote.full"), (301, "remote.answer"), (307, "remote.answer"),
        (400, "remote.answer"), (404, "remote.answer"), (405, "remote.answer"),
        (415, "remote.answer"), (418, "remote.answer"), (501, "remote.answer"),
    ],
)  # fmt: skip
def test_what_will_not_pass_is_not_tried_again(tmp_path: Path, status: int, code: str) -> None:
    """Six tries with refused credentials lock an account, and never help."""
    where = {"Location": "https://mirror.example/elsewhere"}
    with opened(tmp_path) as (remote, behaviour, waits):
        behaviour.answers += [(404, {}), (status, where)]

        with pytest.raises(RemoteError) as caught:
            remote.put_new(PACK, DATA)

    assert caught.value.code == code
    assert waits.waited == []
    assert len(behaviour.asked) == 2


@pytest.mark.parametrize("call", ["stat", "read", "range", "list"])
@pytest.mark.parametrize(("status", "code"), [(401, "refused"), (302, None), (503, None)])
def test_reading_makes_the_same_of_answers(
    tmp_path: Path, call: str, status: int, code: str | None
) -> None:
    """None of these may look like an object that is not there: it would be sent again."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.answers += [(status, {})] * 6
        with pytest.raises(RemoteError) as caught:
            _call(remote, call)

    expected = {302: "no-listing" if call == "list" else "answer", 503: "unreachable"}
    assert caught.value.code == f"remote.{code or expected[status]}"


def _call(remote: HttpsRemote, call: str) -> object:
    if call == "stat":
        return remote.stat(PACK)
    if call == "list":
        return list(remote.iter_names())
    return remote.read(PACK) if call == "read" else remote.read(PACK, 10, 10)


@pytest.mark.parametrize("fault", ["ignores-range", "shifts-range"])
def test_a_range_is_right_or_refused(tmp_path: Path, fault: str) -> None:
    """A shifted frame would fail its digest, and blame the pack instead of the server."""
    with opened(tmp_path, fault) as (remote, behaviour, _):
        behaviour.objects[SLOT] = DATA
        data = remote.read(SLOT, 100, 50)

    expected = {"ignores-range": DATA[100:150], "shifts-range": DATA[101:151]}
    assert data == expected[fault]  # the digest of the frame finds the second; length is right


@pytest.mark.parametrize("content_range", ["bytes 0-9/32768", "bytes 5-9/32768", "bytes */9", "x"])
def test_a_range_that_says_to_be_another_is_refused(tmp_path: Path, content_range: str) -> None:
    """What the server says it sends has to be what was asked for."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.answers += [(206, {"Content-Range": content_range})]
        with pytest.raises(DurarepoError) as caught:
            remote.read(SLOT, 5, 10)

    assert caught.value.code == "remote.answer"


def test_names_out_of_order_end_the_listing(tmp_path: Path) -> None:
    """A listing that turns in a circle would never end."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.objects.update(dict.fromkeys((PACK, SLOT), b""))
        names = remote.iter_names()
        next(names)
        next(names)
        behaviour.answers += [(200, {})]

        assert list(names) == []


# --- what the network does ---


@pytest.mark.parametrize("way", ["to_server", "to_client"])
@pytest.mark.parametrize("limit", [0, 100, 700, 1500, 2600, 4000, 20_000])
@pytest.mark.parametrize("fault", ["", "publishes-torn"])
def test_a_connection_that_is_cut_anywhere_ends_well_or_with_an_alarm(
    tmp_path: Path, way: str, limit: int, fault: str
) -> None:
    """Handshake, head, body or answer: complete, or a clean failure, never a false ok."""
    outcome = ""
    with (
        bad_server(tmp_path, *[fault] * bool(fault)) as (server, behaviour),
        cutting_relay(server.port, **{way: limit}) as server.port,
    ):
        try:
            with closing(_patient(server)) as remote:
                remote.put_new(SLOT, DATA)
        except IntegrityError as error:
            outcome = error.code

    assert outcome in {"", "integrity.object-differs"}
    assert (behaviour.objects[SLOT] == DATA) is (outcome == "")
    assert fault or not outcome


@pytest.mark.parametrize("limit", [1500, 3000, 10_000, 30_000])
def test_an_answer_that_is_cut_is_read_again(tmp_path: Path, limit: int) -> None:
    """Half a frame is never handed out."""
    with (
        bad_server(tmp_path) as (server, behaviour),
        cutting_relay(server.port, to_client=limit) as server.port,
        closing(_patient(server)) as remote,
    ):
        behaviour.objects[SLOT] = DATA

        assert remote.read(SLOT) == DATA


def test_a_server_that_is_cut_off_each_time_is_unreachable(tmp_path: Path) -> None:
    """After the last try there is an error, and not a guess."""
    with (
        bad_server(tmp_path) as (server, behaviour),
        cutting_relay(server.port, to_client=4000, cuts=99) as server.port,
        closing(_patient(server)) as remote,
        pytest.raises(RemoteError) as caught,
    ):
        behaviour.objects[SLOT] = DATA
        remote.read(SLOT)

    assert caught.value.code == "remote.unreachable"


def _patient(server: Server) -> HttpsRemote:
    waits = QuickWaits()
    transport = server.transport("b", waits=waits, pace=Pace(stall=5))
    return HttpsRemote(transport, patience=Patience(waits=waits))


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"],
    ids=["nothing", "half-a-head", "half-a-body"],
)
def test_a_server_that_falls_silent_is_given_up(tmp_path: Path, answer: bytes) -> None:
    """A remote that hangs must not hang the night."""
    waits = QuickWaits()
    with silent_server(tmp_path, answer) as server:
        transport = server.transport("b", waits=waits, pace=Pace(stall=0.2))
        with (
            closing(HttpsRemote(transport, patience=Patience(waits=waits, tries=2))) as remote,
            pytest.raises(RemoteError) as caught,
        ):
            remote.read(SLOT)

    assert caught.value.code == "remote.unreachable"
    assert len(waits.waited) == 1


@contextmanager
def silent_server(folder: Path, answer: bytes, *, connections: int = 2) -> Iterator[Server]:
    """Answer each connection with some bytes, and then no more, until it is over."""
    authority = Authority()
    issued = authority.issue(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)

    def accept(listener: socket.socket) -> None:
        for _ in range(connections):
            plain, _ = listener.accept()
            with context.wrap_socket(plain, server_side=True) as one, suppress(OSError):
                one.recv(4096)
                one.sendall(answer)
                one.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        port = listener.getsockname()[1]
        yield Server(port=port, ca=authority.pem, folder=folder, scopes=["b"])
        thread.join()


@pytest.mark.parametrize(
    ("answer", "drip"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 200 OK\r\nX-A: ", b"a"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    ],
    ids=["interim-answers", "head", "size-of-a-chunk"],
)  # fmt: skip
def test_a_server_that_drips_for_ever_is_given_up(
    tmp_path: Path, answer: bytes, drip: bytes
) -> None:
    """No read of it stalls, and no end comes: it would hold the client all night."""
    waits = QuickWaits()
    pace = Pace(stall=10, exchange=0.3)
    with dripping_server(tmp_path, answer, drip) as (server, left):
        transport = server.transport("b", waits=waits, pace=pace)
        with (
            closing(HttpsRemote(transport, patience=Patience(waits=waits, tries=1))) as remote,
            pytest.raises(RemoteError) as caught,
        ):
            remote.read(SLOT)

    assert caught.value.code == "remote.unreachable"
    assert left == ["the client went away"]


@contextmanager
def dripping_server(folder: Path, answer: bytes, drip: bytes) -> Iterator[tuple[Server, list[str]]]:
    """Answer one connection with some bytes, then with few at a time; tells who ended it."""
    authority = Authority()
    issued = authority.issue(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    left: list[str] = []

    def accept(listener: socket.socket) -> None:
        plain, _ = listener.accept()
        with context.wrap_socket(plain, server_side=True) as one:
            try:
                one.recv(4096)
                one.sendall(answer)
                for _ in range(400):
                    one.sendall(drip)
                    time.sleep(0.02)
                left.append("the server was tired of it")
            except OSError:
                left.append("the client went away")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,))
        thread.start()
        port = listener.getsockname()[1]
        yield Server(port=port, ca=authority.pem, folder=folder, scopes=["b"]), left
        thread.join()


def test_a_server_that_speaks_no_tls_gets_nothing(tmp_path: Path) -> None:
    """Not even a request in the clear, with a token in it."""
    listener = socket.create_server(("127.0.0.1", 0))
    got: list[bytes] = []

    def accept() -> None:
        one, _ = listener.accept()
        with one:
            got.append(one.recv(4096))
            one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    server = Server(
        port=listener.getsockname()[1], ca=Authority().pem, folder=tmp_path, scopes=["b"]
    )
    transport = server.transport("b", token=Secret(b"Bearer a-token"))
    with (
        listener,
        closing(HttpsRemote(transport, patience=Patience(waits=QuickWaits()))) as remote,
        pytest.raises(RemoteError) as caught,
    ):
        remote.stat(SLOT)
    thread.join(5)

    assert caught.value.code == "remote.tls"
    assert b"HTTP" not in got[0]
    assert b"a-token" not in got[0]


def test_an_answer_without_end_is_cut_off(tmp_path: Path) -> None:
    """A server that declares no length and never ends must not fill the memory."""
    answer = b"HTTP/1.1 200 OK\r\n\r\n" + bytes(PACK_MAX_BYTES + (1 << 20))
    with (
        silent_server(tmp_path, answer, connections=1) as server,
        closing(
            HttpsRemote(server.transport("b"), patience=Patience(waits=QuickWaits()))
        ) as remote,
        pytest.raises(IntegrityError) as caught,
    ):
        remote.read(SLOT)

    assert caught.value.code == "integrity.object-size"


@pytest.mark.parametrize("case", ["too-long", "refused", "cut"])
def test_an_answer_that_is_not_read_gives_its_connection_back(tmp_path: Path, case: str) -> None:
    """There are eight connections; the ninth odd answer must not make the night stand still."""
    failures = 0
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.objects[SLOT] = bytes(PACK_MAX_BYTES + 1)
        for _ in range(20):
            if case == "refused":
                behaviour.answers += [(401, {"X": "x" * 20_000})]
            if case == "cut":
                behaviour.answers += [(200, {"Content-Length": "-5"})] * 6
            with pytest.raises(DurarepoError):
                remote.read(SLOT)
            failures += 1
        behaviour.answers.clear()
        behaviour.objects[PACK] = DATA

        assert remote.read(PACK) == DATA
    assert failures == 20


def test_the_token_is_in_no_error_and_no_repr(tmp_path: Path) -> None:
    """An error text travels: into logs, status lines and tickets."""
    with opened(tmp_path) as (remote, behaviour, _):
        behaviour.answers += [(401, {})]
        with pytest.raises(RemoteError) as caught:
            remote.stat(SLOT)

        shown = f"{caught.value} {caught.value.hint} {remote!r} {vars(remote.transport)!r}"
    assert "a-token" not in shown
