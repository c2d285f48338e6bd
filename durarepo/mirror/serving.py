"""Runs a mirror: checks what it needs, listens, and ends when it is told to.

The only door of uvicorn. TLS is always spoken; the lock of the folder is held meanwhile, so
that no second server counts the same objects. Source: spec/mirror.md 4 and 7. Start at `serve`.
"""

import os
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime

import uvicorn

from durarepo.core.errors import ConfigurationError
from durarepo.core.limits import MIRROR_CONNECTIONS, MIRROR_IDLE_SECONDS
from durarepo.local.lock import RunLock
from durarepo.local.secretfiles import read_secret
from durarepo.mirror.access import TOKENS_MAX_BYTES, Access, parse_tokens
from durarepo.mirror.app import Mirror
from durarepo.mirror.counting import AccessLog
from durarepo.mirror.patience import PatientProtocol
from durarepo.mirror.settings import MirrorSettings
from durarepo.mirror.shelves import open_shelves
from durarepo.store.atomic import make_folder, read_small, shown

_GRACE_SECONDS = 20
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


def serve(
    settings: MirrorSettings,
    *,
    log: AccessLog,
    announce: Callable[[str, int], None],
    now: Callable[[], float],
) -> None:
    """Answer requests until the process gets SIGTERM or SIGINT; uploads may end then.

    Args:
        settings: where and with what.
        log: takes one line a request.
        announce: told address and port once connections are accepted.
        now: seconds since 1970.

    Raises:
        ConfigurationError: ``mirror``, ``tokens``.
        KeyMaterialError: the private key can be read by others.
        RunError: ``locked``: another server has that folder.
        StoreError: the folder cannot be used.
    """
    access = read_tokens(settings)
    context = server_context(settings)
    make_folder(settings.folder)
    lock = RunLock(os.path.join(settings.folder, b".lock"), now=datetime.fromtimestamp(now(), UTC))
    with lock, _listening(settings) as listener:
        shelves = open_shelves(settings.folder, access.scopes, quota_bytes=settings.quota_bytes)
        for shelf in shelves.values():
            shelf.store.remove_leftovers(lock)
        mirror = Mirror(shelves, access, log=log, now=now)
        try:
            host, port = listener.getsockname()[:2]
            announce(str(host), int(port))
            uvicorn.Server(_configured(mirror, context)).run(sockets=[listener])
        finally:
            mirror.close()


def read_tokens(settings: MirrorSettings) -> Access:
    """Return what the tokens file allows.

    Raises:
        ConfigurationError: ``tokens``; ``mirror``: the file is not there.
        StoreError: it cannot be read.
    """
    text = read_small(settings.tokens, TOKENS_MAX_BYTES)
    if text is None:
        raise ConfigurationError("mirror", f"there is no tokens file {shown(settings.tokens)}")
    return parse_tokens(text)


def server_context(settings: MirrorSettings) -> ssl.SSLContext:
    """Return the TLS context of the server: its certificate, TLS 1.2 or later.

    Raises:
        ConfigurationError: ``mirror``: certificate and key cannot be used.
        KeyMaterialError: others can read the key.
    """
    read_secret(settings.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except (ssl.SSLError, OSError):
        raise ConfigurationError(
            "mirror",
            f"certificate {shown(settings.certificate)} and its key cannot be used",
            hint="name a certificate in PEM, with its chain, and the key that belongs to it",
        ) from None
    return context


def _listening(settings: MirrorSettings) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
        return socket.create_server((settings.address, settings.port), family=family)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            "mirror",
            f"cannot listen on '{settings.address}' port {settings.port}",
            hint="choose an address of this machine and a free port",
        ) from error


def _configured(mirror: Mirror, context: ssl.SSLContext) -> uvicorn.Config:
    return uvicorn.Config(
        mirror,
        http=PatientProtocol,
        loop="uvloop",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MIRROR_CONNECTIONS,
        timeout_keep_alive=MIRROR_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_context_factory=lambda _config, _default: context,
    )
