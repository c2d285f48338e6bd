"""Whom a connection believes: one CA by file, or the authorities of the system. No way around.

Names and certificates are verified in every context that is made here. Nothing is taken from
the environment: neither SSL_CERT_FILE nor any other variable adds an authority or a key log.
Source: spec/mirror.md 2 (AICEP 10.5.4, A4d). Start at `verifying_context`.
"""

import os
import ssl

from durarepo.core.errors import ConfigurationError

CA_MAX_BYTES = 1024 * 1024
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # others
)


def verifying_context(ca: bytes | None = None) -> ssl.SSLContext:
    """Return a client context that verifies certificate and host name, TLS 1.2 or later.

    Args:
        ca: certificates in PEM; only what they sign counts. None for those of the system.

    Raises:
        ConfigurationError: ``ca``: it holds no certificate, or the system has none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies both from the start
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is None:
        _load_system(context)
        return context
    try:
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise _no_authority("the CA file of a remote holds no certificate in PEM") from None
    if not context.get_ca_certs():
        raise _no_authority("the CA file of a remote holds no certificate of an authority")
    return context


def _load_system(context: ssl.SSLContext) -> None:
    """Add the authorities of the system from the places that it is built with."""
    built_in = ssl.get_default_verify_paths().openssl_cafile
    for bundle in (built_in, *_SYSTEM_BUNDLES):
        if os.path.isfile(bundle):
            context.load_verify_locations(cafile=bundle)
            return
    raise _no_authority("this system has no certificates of authorities")


def _no_authority(message: str) -> ConfigurationError:
    return ConfigurationError(
        "ca", message, hint="name the CA of the remote in stream.toml, or install ca-certificates"
    )
