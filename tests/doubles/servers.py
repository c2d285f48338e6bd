"""Real servers on loopback with TLS, for tests: the mirror, nginx, and ones that misbehave.

Each serves as many bases as are asked for, so that a test has an empty one without a new
server. Nothing is shared with another run. Start at `mirror_server` and `nginx_server`.
"""

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from durarepo.core.secret import Secret
from durarepo.mirror.access import Right, make_token
from durarepo.store.credentials import parse_credentials
from durarepo.store.https import HttpsRemote
from durarepo.store.remoteurl import HttpsUrl
from durarepo.store.retrying import Patience
from durarepo.store.tls import verifying_context
from durarepo.store.transport import Pace, Transport, Waits
from tests.architecture.sources import TOP
from tests.doubles.pki import Authority

BASES = 400
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class QuickWaits:
    """A clock that jumps instead of waiting; ``waited`` says how long it would have been."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def now(self) -> float:
        """Return the time, with all that was waited."""
        return time.monotonic() + sum(self.waited)

    def wait(self, seconds: float) -> None:
        """Note a wait."""
        self.waited.append(seconds)

    def share(self) -> float:
        """Return the middle."""
        return 0.5


@dataclass(slots=True, kw_only=True)
class Server:
    """A server that runs, and what is needed to speak to it."""

    port: int
    ca: bytes
    folder: Path
    scopes: list[str]
    tokens: dict[str, Secret] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    taken: Iterator[int] = field(default_factory=count)

    def next_scope(self) -> str:
        """Return a base that nobody has used."""
        return self.scopes[next(self.taken)]

    def transport(
        self, scope: str, *, token: Secret | None = None, pace: Pace | None = None,
        waits: Waits | None = None, host: str = "localhost", ca: bytes | None = None,
    ) -> Transport:  # fmt: skip
        """Return a transport to one base."""
        return Transport(
            HttpsUrl(host=host, port=self.port, path=f"/{scope}/"),
            context=verifying_context(ca or self.ca),
            waits=waits or QuickWaits(),
            authorization=token or self.tokens.get(scope),
            pace=pace,
        )

    def remote(self, scope: str, *, trusts_digest: bool = False) -> HttpsRemote:
        """Return a remote at one base, with its token."""
        waits = QuickWaits()
        return HttpsRemote(
            self.transport(scope, waits=waits),
            patience=Patience(waits=waits),
            trusts_digest=trusts_digest,
        )

    def objects(self, scope: str) -> Path:
        """Return the folder on disk that is the base."""
        return self.folder / scope


def _scopes() -> list[str]:
    return [f"s{number}" for number in range(BASES)]


def token_lines(scopes: list[str], right: Right = Right.PUT) -> tuple[dict[str, Secret], str]:
    """Return a token for each scope, as `Authorization` fields, and the lines that let them in."""
    tokens, lines = {}, []
    for scope in scopes:
        secret, line = make_token(scope, right)
        tokens[scope] = parse_credentials(b"bearer " + secret.reveal())
        lines.append(line)
    return tokens, "\n".join(lines) + "\n"


@contextlib.contextmanager
def mirror_server(
    folder: Path, *, quota_bytes: int = 0, extra_lines: str = "", scopes: list[str] | None = None
) -> Iterator[Server]:
    """Run `durarepo-mirror` as a process until the context ends."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority()
    issued = authority.issue(folder / "pki")
    names = _scopes() if scopes is None else scopes
    tokens, lines = token_lines(names)
    (folder / "tokens").write_text(lines + extra_lines)
    (folder / "mirror.toml").write_text(
        f'folder = "{folder / "objects"}"\nport = 0\ncertificate = "{issued.certificate}"\n'
        f'key = "{issued.key}"\ntokens = "{folder / "tokens"}"\nquota_bytes = {quota_bytes}\n'
    )
    process = start_mirror(folder)
    try:
        yield Server(
            port=port_of(folder, process), ca=authority.pem, folder=folder / "objects",
            scopes=names, tokens=tokens, process=process,
        )  # fmt: skip
    finally:
        end(process)


def start_mirror(folder: Path) -> subprocess.Popen[bytes]:
    """Start the server of a folder that `mirror_server` has prepared."""
    program = "import sys; from durarepo_cli.mirror import main; sys.exit(main())"
    with (folder / "errors").open("ab") as errors, (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", program, "serve", "--config", str(folder / "mirror.toml")],
            env={"PYTHONPATH": f"{TOP}:{TOP / 'cli'}", "PATH": os.environ["PATH"]},
            stdout=log, stderr=errors,
        )  # fmt: skip


def port_of(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """Return the port that the mirror of a folder says it listens on."""
    for _ in range(1500):
        first, newline, _ = (folder / "log").read_bytes().partition(b"\n")
        if newline:
            return int(json.loads(first)["port"])
        assert process.poll() is None, (folder / "errors").read_text()
        time.sleep(0.02)
    pytest.fail("the mirror does not come up")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server and wait for it."""
    process.terminate()
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


NGINX_CONF = """
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/tmp;
  proxy_temp_path {folder}/tmp;
  fastcgi_temp_path {folder}/tmp;
  scgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp;
  client_max_body_size 33m;
  client_body_buffer_size 256k;
  map_hash_bucket_size 256;
  map $http_authorization $is_known {{ default 0; "Bearer {token}" 1; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    server_name localhost;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    keepalive_requests 100000;
    location ~ "^/s[0-9]+/[0-9a-f]{{2}}/[0-9a-f]{{64}}$" {{
      root {folder}/objects;
      if ($is_known = 0) {{ return 401; }}
      limit_except GET HEAD PUT {{ deny all; }}
      set $there "";
      if (-f $request_filename) {{ set $there "there"; }}
      set $case "$there$request_method";
      if ($case = "therePUT") {{ return 412; }}
      default_type application/octet-stream;
      dav_methods PUT;
      create_full_put_path on;
      dav_access user:rw;
    }}
    location / {{ return 404; }}
  }}
}}
"""
"""Write-once by rule, as spec/mirror.md shows it."""


@contextlib.contextmanager
def nginx_server(folder: Path) -> Iterator[Server]:
    """Run nginx until the context ends; where it is not installed, say so loudly.

    In the gate its absence is a failure: ``.ci/run`` installs it and sets ``DURAREPO_GATE``.
    """
    if NGINX is None:
        message = "NGINX IS NOT INSTALLED: the contract is not proven for it (apt: nginx-light)"
        is_gate = os.environ.get("CI") or os.environ.get("DURAREPO_GATE")
        pytest.fail(message) if is_gate else pytest.skip(message)
    for name in ("objects", "tmp"):
        (folder / name).mkdir(parents=True)
    authority = Authority()
    issued = authority.issue(folder / "pki")
    secret, _ = make_token("s0", Right.PUT)
    token = parse_credentials(b"bearer " + secret.reveal())
    secret_text = secret.reveal().decode()
    for _ in range(_PORTS):
        port = free_port()
        conf = NGINX_CONF.format(
            folder=folder, port=port, certificate=issued.certificate, key=issued.key,
            token=secret_text,
        )  # fmt: skip
        process = _start_nginx(folder, conf)
        if _listens(port, process):
            break
    else:
        pytest.fail("nginx does not start")
    try:
        wait_for(port, process)
        yield Server(
            port=port, ca=authority.pem, folder=folder / "objects", scopes=_scopes(),
            tokens=dict.fromkeys(_scopes(), token), process=process,
        )  # fmt: skip
    finally:
        end(process)


_PORTS = 5
"""So many ports are tried: between choosing one and listening another program may take it."""


def _start_nginx(folder: Path, conf: str) -> subprocess.Popen[bytes]:
    if os.geteuid() == 0:
        conf = "user root;\n" + conf
    (folder / "nginx.conf").write_text(conf)
    place = ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "start.log")]
    return subprocess.Popen([str(NGINX), *place], stderr=subprocess.DEVNULL)


def _listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    try:
        wait_for(port, process)
    except AssertionError:
        return False
    return True


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when something accepts connections on a port."""
    for _ in range(500):
        assert process.poll() is None, "the server ended at once"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    pytest.fail("the server does not listen")


def raw_connection(server: Server) -> ssl.SSLSocket:
    """Return a TLS connection to a server, for what a well-behaved client never sends."""
    context = verifying_context(server.ca)
    plain = socket.create_connection(("127.0.0.1", server.port), 20)
    return context.wrap_socket(plain, server_hostname="localhost")
