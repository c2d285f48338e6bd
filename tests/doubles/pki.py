"""Certificates for servers of tests, made anew each time: a CA, and what it signs or does not."""

import datetime
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """Files of one certificate: itself with its chain, and its key (0600)."""

    certificate: Path
    key: Path


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    """A CA of its own; ``pem`` is its certificate."""

    def __init__(self, name: str = "a CA of a test") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = (
            self._begun(self._name, self._key.public_key(), days=(-1, 30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=False, content_commitment=False, key_encipherment=False,
                    data_encipherment=False, key_agreement=False, key_cert_sign=True,
                    crl_sign=True, encipher_only=False, decipher_only=False,
                ),
                critical=True,
            )
            .issuer_name(self._name)
            .sign(self._key, hashes.SHA256())
        )  # fmt: skip
        self.pem = self._certificate.public_bytes(Encoding.PEM)

    def issue(
        self,
        folder: Path,
        *,
        names: tuple[str, ...] = ("localhost", "127.0.0.1"),
        days: tuple[int, int] = (-1, 30),
        is_self_signed: bool = False,
    ) -> Issued:
        """Write a server certificate for names and addresses into a folder.

        Args:
            folder: made if it is missing.
            names: what it is good for.
            days: from when to when it is valid, counted from now.
            is_self_signed: signed with its own key instead of that of the CA.
        """
        folder.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = [_alternative(one) for one in names]
        begun = self._begun(_named("a server of a test"), key.public_key(), days=days)
        issuer = _named("a server of a test") if is_self_signed else self._name
        made = (
            begun.issuer_name(issuer)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(key if is_self_signed else self._key, hashes.SHA256())
        )
        issued = Issued(certificate=folder / "server.pem", key=folder / "server.key")
        chain = b"" if is_self_signed else self.pem
        issued.certificate.write_bytes(made.public_bytes(Encoding.PEM) + chain)
        issued.key.touch(mode=0o600)
        issued.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return issued

    def _begun(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey, *, days: tuple[int, int]
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder(subject_name=subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + days[0] * _DAY)
            .not_valid_after(now + days[1] * _DAY)
        )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
