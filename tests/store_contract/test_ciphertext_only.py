"""What a recording server gets to see of a real stream: names, sizes, ciphertext, nothing else."""

from contextlib import closing
from pathlib import Path

from durarepo.core.limits import SIZE_CLASSES
from durarepo.store.bodies import body_of_object
from durarepo.store.https import HttpsRemote
from durarepo.store.localdir import LocalDir
from durarepo.store.retrying import Patience
from tests.doubles.bad_server import bad_server
from tests.doubles.servers import QuickWaits
from tests.machines.stream import Stream, fill

WORDS = {
    f"folder-{n}/draft-{n}.md": b"a sentence of plaintext, number %d; " % n * 400 for n in range(9)
}


def test_no_plaintext_no_path_and_no_stream_name_is_in_any_request(tmp_path: Path) -> None:
    """The mirror is somebody else's disk: it gets ciphertext under opaque names (A4c, A4e)."""
    stream = Stream(tmp_path / "home", name="a-telling-name")
    fill(Path(stream.root), WORDS)
    for _ in range(2):
        stream.snapshot()
    waits = QuickWaits()
    with (
        bad_server(tmp_path / "pki") as (server, behaviour),
        LocalDir(bytes(stream.objects)) as local,
        closing(
            HttpsRemote(server.transport("b", waits=waits), patience=Patience(waits=waits))
        ) as remote,
    ):
        for name in local.iter_names():
            remote.send(name, body_of_object(local, name))

    sent = [one.body for one in behaviour.asked if one.method == "PUT"]
    told = b"".join(
        f"{one.method} {one.path} {one.fields}".encode() + one.body for one in behaviour.asked
    )
    assert sorted(behaviour.objects) == sorted(path.name for path in stream.object_files())
    assert {len(body) for body in sent} <= set(SIZE_CLASSES)
    for secret in (b"sentence of plaintext", b"folder-", b"/draft-", b"telling-name"):
        assert secret not in told
