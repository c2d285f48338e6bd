"""Whom a connection believes: five bad certificates, and an environment that would like to help.

Source: AICEP 10.5.4 (A4d).
"""

import os
import ssl
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from durarepo.core.errors import ConfigurationError, RemoteError
from durarepo.core.secret import Secret
from durarepo.store.https import HttpsRemote
from durarepo.store.remoteurl import HttpsUrl
from durarepo.store.retrying import Patience
from durarepo.store.tls import verifying_context
from durarepo.store.transport import Transport
from tests.architecture.sources import TOP
from tests.doubles.bad_server import bad_server
from tests.doubles.pki import Authority
from tests.doubles.servers import QuickWaits

NAME = "ab" * 32
BUNDLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE")


def bad_certificates() -> dict[str, dict[str, object]]:
    """Return how each bad certificate is issued."""
    return {
        "expired": {"days": (-10, -1)},
        "not-yet-valid": {"days": (2, 10)},
        "wrong-host": {"names": ("elsewhere.example", "10.1.2.3")},
        "self-signed": {"is_self_signed": True},
        "unknown-ca": {},
    }


@pytest.mark.parametrize("case", bad_certificates())
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_bad_certificate_ends_it_before_a_byte_is_sent(
    tmp_path: Path, case: str, host: str
) -> None:
    """Whoever answers in the place of the remote gets neither an object nor the credentials."""
    authority = Authority("a stranger") if case == "unknown-ca" else Authority()
    issued = authority.issue(tmp_path, **bad_certificates()[case])  # type: ignore[arg-type]  # of a table
    believed = Authority().pem if case == "unknown-ca" else authority.pem
    waits = QuickWaits()
    with bad_server(tmp_path, issued=issued, authority=authority) as (server, behaviour):
        transport = server.transport(
            "b", host=host, ca=believed, waits=waits, token=Secret(b"Bearer secret")
        )
        with (
            closing(HttpsRemote(transport, patience=Patience(waits=waits))) as remote,
            pytest.raises(RemoteError) as caught,
        ):
            remote.put_new(NAME, b"x" * 1000)  # type: ignore[arg-type]  # a name in plain text

    assert caught.value.code == "remote.tls"
    assert behaviour.asked == []
    assert waits.waited == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_good_certificate_of_the_named_ca_is_accepted(tmp_path: Path, host: str) -> None:
    """If nothing were ever accepted, the tests of bad ones would prove nothing."""
    with (
        bad_server(tmp_path) as (server, behaviour),
        closing(
            HttpsRemote(server.transport("b", host=host), patience=Patience(waits=QuickWaits()))
        ) as remote,
    ):
        remote.put_new(NAME, b"x")  # type: ignore[arg-type]  # a name in plain text

    assert behaviour.objects[NAME] == b"x"


@pytest.mark.parametrize("variable", BUNDLES)
@pytest.mark.parametrize("has_ca", [False, True])
def test_no_variable_adds_an_authority(tmp_path: Path, variable: str, has_ca: bool) -> None:  # noqa: FBT001
    """A line in somebody's profile must not decide whom the backup trusts."""
    (tmp_path / "own.pem").write_bytes(Authority().pem)
    code = (
        "import ssl, sys; from durarepo.store.tls import verifying_context as v; "
        "data = open(sys.argv[2], 'rb').read() if sys.argv[2] else None; "
        "want = ssl.PEM_cert_to_DER_cert(open(sys.argv[1]).read()); "
        "print(want in v(data).get_ca_certs(binary_form=True))"
    )
    stranger = tmp_path / "stranger.pem"
    stranger.write_bytes(Authority("a stranger").pem)
    environment = {**os.environ, "PYTHONPATH": str(TOP), variable: str(stranger)}

    done = subprocess.run(
        [sys.executable, "-c", code, str(stranger), str(tmp_path / "own.pem") if has_ca else ""],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout.strip() == "False"


def test_a_named_ca_is_the_only_one() -> None:
    """A private CA that is added to a hundred public ones protects from none of them."""
    context = verifying_context(Authority().pem)

    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.keylog_filename is None


@pytest.mark.parametrize(
    "text", [b"", b"no PEM", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nAA\n"]
)
def test_a_ca_file_without_a_certificate_is_refused(text: bytes) -> None:
    """An empty file that means 'trust the system' would widen what the operator narrowed."""
    with pytest.raises(ConfigurationError) as caught:
        verifying_context(text)

    assert caught.value.code == "config.ca"


@pytest.mark.parametrize("weaken", ["verify", "name"])
def test_a_context_that_does_not_verify_is_refused(weaken: str) -> None:
    """No caller can turn the check off by handing in a context of its own."""
    context = verifying_context(Authority().pem)
    context.check_hostname = False
    if weaken == "verify":
        context.verify_mode = ssl.CERT_NONE

    with pytest.raises(ValueError, match="verification"):
        Transport(
            HttpsUrl(host="mirror.example", port=443, path="/"), context=context, waits=QuickWaits()
        )
