"""Makes fresh instances of every kind of case: other seeds, other names, other surroundings.

Nothing here is a header or a token as it stands: all are put together when a test runs, and
every secret is drawn from a seeded generator. Start at `KINDS`.
"""
# ruff: noqa: ARG005, E501 - drawn from a seed on purpose; a table of makers; long rows

import base64
import json
import random
import sqlite3
import string
from collections.abc import Callable
from contextlib import closing

from tests.policy.cases import Case

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
WORDS = [
    "harbour",
    "quilt",
    "lantern",
    "meadow",
    "copper",
    "violin",
    "saddle",
    "orbit",
    "thistle",
    "gravel",
    "ember",
    "willow",
    "plain",
    "anchor",
    "basket",
    "chimney",
    "ladder",
    "needle",
    "pepper",
    "ribbon",
    "silver",
    "timber",
    "velvet",
    "walnut",
]
PRIVATE = "PRIVATE" + " KEY"

Draw = random.Random
Make = Callable[[Draw], Case]


def text(draw: Draw, size: int, letters: str = ALNUM) -> str:
    """Return drawn letters, a digit and two cases among them where the alphabet has such."""
    while True:
        drawn = "".join(draw.choice(letters) for _ in range(size))
        if size < 12 or (any(c.isdigit() for c in drawn) and any(c.isalpha() for c in drawn)):
            return drawn


def word(draw: Draw) -> str:
    """Return a harmless word."""
    return draw.choice(WORDS)


def prose(draw: Draw, lines: int = 6) -> str:
    """Return harmless lines."""
    return "".join(
        " ".join(word(draw) for _ in range(draw.randint(4, 12))).capitalize() + ".\n"
        for _ in range(lines)
    )


def folders(draw: Draw) -> str:
    """Return zero to three harmless folders, with a slash at the end."""
    return "".join(f"{word(draw)}{draw.randint(1, 99)}/" for _ in range(draw.randint(0, 3)))


def begin(label: str) -> str:
    """Return an opening boundary."""
    return "-" * 5 + "BEGIN " + label + "-" * 5


def end(label: str) -> str:
    """Return a closing boundary."""
    return begin(label).replace("BEGIN", "END")


def base64_lines(draw: Draw, size: int, width: int = 64) -> list[str]:
    """Return drawn bytes in base64, broken into lines."""
    coded = base64.b64encode(draw.randbytes(size)).decode()
    return [coded[at : at + width] for at in range(0, len(coded), width)]


LABELS = (
    *(f"{one}{PRIVATE}" for one in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "ANY ")),
    *(f"{one}{PRIVATE}" for one in ("ED25519 ", "X25519 ", "TSS2 ", "ENCRYPTED COSIGN ", "DH ")),
    *(f"{one}{PRIVATE}" for one in ("NEBULA X25519 ", "ML-DSA-65 ", "SM2 ", "ENCRYPTED SIGSTORE ")),
    f"PGP {PRIVATE} BLOCK",
)


def pem(draw: Draw, newline: str = "\n", *, body: int = 0) -> str:
    """Return a private key in PEM with a drawn label and a drawn body."""
    label = draw.choice(LABELS)
    lines = [begin(label), *base64_lines(draw, body or draw.randint(48, 1200)), end(label)]
    return newline.join(lines) + newline


def _ssh2(draw: Draw) -> str:
    kind = draw.choice(("", "ENCRYPTED "))
    head = "-" * 4 + f" BEGIN SSH2 {kind}{PRIVATE} " + "-" * 4
    lines = ['Comment: "x"', *base64_lines(draw, 300, 70)]
    return "\n".join([head, *lines, head.replace("BEGIN", "END")]) + "\n"


def _putty(draw: Draw) -> str:
    head = f"PuTTY-User-Key-File-{draw.choice('23')}: ssh-rsa"
    return "\n".join([head, "Encryption: none", "Private-Lines: 1", *base64_lines(draw, 48)])


def _minisign(draw: Draw) -> str:
    comment = draw.choice(("minisign encrypted secret key", "signify secret key", word(draw)))
    head = b"Ed" + draw.choice((b"Sc", b"\0\0")) + b"B2"
    body = base64.b64encode(head + draw.randbytes(152)).decode()
    return f"untrusted comment: {comment}\n{body}\n"


def _openvpn(draw: Draw) -> str:
    label = "OpenVPN Static key V1"
    return "\n".join([begin(label), *(text(draw, 32, HEX) for _ in range(16)), end(label)])


def _wireguard(draw: Draw) -> str:
    key = base64.b64encode(draw.randbytes(32)).decode()
    return "[Interface]\nAddress = 10.0.0.2/32\nPrivate" + f"Key = {key}\n"


def _jwk(draw: Draw) -> str:
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": text(draw, 43, URLSAFE)}
    jwk["d"] = text(draw, 43, URLSAFE)
    return json.dumps({"keys": [jwk]}, indent=draw.choice((None, 2)))


def _dnssec(draw: Draw) -> str:
    names = ("Modulus", "Prime1")
    rows = (f"{name}: {base64.b64encode(draw.randbytes(64)).decode()}" for name in names)
    return "Private-" + "key-format: v1.3\nAlgorithm: 8 (RSASHA256)\n" + "\n".join(rows)


def _tsig(draw: Draw) -> str:
    secret = base64.b64encode(draw.randbytes(32)).decode()
    return f'key "{word(draw)}" {{\n  algorithm hmac-sha256;\n  secret "{secret}";\n}};\n'


def _nkey(draw: Draw) -> str:
    seed = "S" + "UA" + text(draw, 55, string.ascii_uppercase + "234567")
    return "\n".join([begin("USER NKEY SEED"), seed, begin("USER NKEY SEED")])


OTHER_KEYS: tuple[Callable[[Draw], str], ...] = (
    *(_ssh2, _putty, _minisign, _openvpn, _wireguard, _jwk, _dnssec, _tsig, _nkey),
    lambda draw: "AGE-SECRET-" + "KEY-1" + text(draw, 58, BECH32) + "\n",
    lambda draw: "AGE-SECRET-" + "KEY-PQ-1" + text(draw, 58, BECH32) + "\n",
)


def other_keys(draw: Draw) -> str:
    """Return a private key in one of the forms that are no PEM."""
    return draw.choice(OTHER_KEYS)(draw)


def key_file(draw: Draw) -> Case:
    """A private key somewhere in a file of a harmless name."""
    key = pem(draw) if draw.random() < 0.5 else other_keys(draw)
    before = prose(draw, draw.randint(0, 40)) if draw.random() < 0.5 else ""
    after = prose(draw, draw.randint(0, 40)) if draw.random() < 0.5 else ""
    name = f"{word(draw)}.{draw.choice(['txt', 'md', 'pem', 'key', 'log', 'svg', 'pdf', 'bin', 'conf', 'py', 'go', 'asc', 'lock'])}"
    return case_of("pk-header", folders(draw) + name, before + key + after, "exclude")


def _shifted(draw: Draw, key: str) -> bytes:
    data = b" " * draw.randrange(3) + key.encode()
    coded = base64.encodebytes(data) if draw.random() < 0.5 else base64.b64encode(data)
    return b"data: " + coded


def _far(draw: Draw, key: str) -> bytes:
    far = draw.choice((1, 4, 64, 1024)) * 1024 - draw.randrange(60)
    return b"y" * far + key.encode()


WIDE = ("utf-16", "utf-16-le", "utf-16-be")
CARRIERS: tuple[Callable[[Draw, str], bytes], ...] = (
    *(_shifted, _far),
    lambda draw, key: (prose(draw) + key).encode(draw.choice(WIDE)),
    lambda draw, key: key.encode(draw.choice(("utf-32-le", "utf-32-be"))),
    lambda draw, key: json.dumps({word(draw): json.dumps({"stdout": key})}).encode(),
    lambda draw, key: b"".join(b"> " + line for line in key.encode().splitlines(keepends=True)),
    lambda draw, key: b"key=" + b" ".join(key.encode().split(b"\n")),
    lambda draw, key: draw.randbytes(draw.randrange(3000)) + key.encode() + draw.randbytes(100),
    lambda draw, key: prose(draw).encode() + begin(draw.choice(LABELS)).encode(),
    lambda draw, key: b"\xef\xbb\xbf" + key.encode(),
)


def key_in_other_letters(draw: Draw) -> Case:
    """A private key in another encoding, or behind escapes, or far into a file."""
    key = pem(draw, draw.choice(("\n", "\r\n", "\r")))
    data = draw.choice(CARRIERS)(draw, key)
    name = (
        f"{word(draw)}.{draw.choice(['txt', 'yaml', 'jsonl', 'eml', 'bin', 'zip', 'swp', 'dat'])}"
    )
    return case_of("pk-encoding", folders(draw) + name, data, "exclude")


def key_prose(draw: Draw) -> Case:
    """Words about keys, without a header."""
    lines = (
        f"Look for the words {PRIVATE} in the file.",
        f"the label is `RSA {PRIVATE}`, between dashes",
        "PuTTY-User-Key-File is how it begins, whatever the version",
        "An identity starts with AGE-SECRET-" + "KEY-1 and stays at home.",
        "header = '-----' + 'BEGIN ' + label + '-----'",
        "re.compile(r'-----BEGIN ([A-Z ]*)" + PRIVATE + "-----')",
        "untrusted comment: signature from minisign secret key",
        "the first line names a minisign secret key",
        begin("CERTIFICATE"),
        begin("PUBLIC KEY"),
        "PrivateKey = <your key>",
        f"{begin('X')[:-1]} {PRIVATE}",
    )
    chosen = "\n".join(draw.sample(lines, draw.randint(1, 5)))
    name = f"{word(draw)}-{draw.choice(('private_key', 'id_rsa', 'pem', 'keys'))}.md"
    return case_of(
        "pk-prose", folders(draw) + name, prose(draw) + chosen + "\n" + prose(draw), "include"
    )


def public_thing(draw: Draw) -> Case:
    """Certificates, public keys, signatures and messages."""
    labels = ("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY", "DH PARAMETERS", "X509 CRL")
    label = draw.choice((*labels, "PGP MESSAGE", "PGP SIGNATURE", "PGP PUBLIC KEY BLOCK", "PKCS7"))
    body = "\n".join([begin(label), *base64_lines(draw, draw.randint(60, 1500)), end(label)])
    pick = draw.randrange(6)
    name = f"{word(draw)}.pem"
    if pick == 0:
        body = base64.b64encode(body.encode()).decode()
    elif pick == 1:
        body, name = f"ssh-ed25519 AAAA{text(draw, 64)} me@host\n", ".ssh/id_ed25519.pub"
    elif pick == 2:
        body = f"untrusted comment: minisign public key\nRW{text(draw, 54)}\n"
    elif pick == 3:
        key = {"kty": "EC", "x": text(draw, 43, URLSAFE), "y": text(draw, 43, URLSAFE)}
        body = json.dumps({"keys": [key]})
    elif pick == 4:
        body = f"untrusted comment: signature from minisign secret key\nRUR{text(draw, 97)}\n"
    return case_of("public-crypto", folders(draw) + name, body, "include")


TOKENS: tuple[Callable[[Draw], str], ...] = (
    lambda d: "gh" + d.choice("pousr") + "_" + text(d, 36),
    lambda d: "github_" + "pat_" + text(d, 22) + "_" + text(d, 59),
    lambda d: "glp" + "at-" + text(d, 20, URLSAFE),
    lambda d: "AK" + "IA" + text(d, 16, string.ascii_uppercase + "234567"),
    lambda d: "sk-" + f"ant-api03-{text(d, 93, URLSAFE)}AA",
    lambda d: "sk-" + f"proj-{text(d, 74, URLSAFE)}T3Blb" + f"kFJ{text(d, 74, URLSAFE)}",
    lambda d: "sk-" + text(d, 20) + "T3Blb" + "kFJ" + text(d, 20),
    lambda d: "sk-" + "or-v1-" + text(d, 64, HEX),
    lambda d: "AI" + "za" + text(d, 35, URLSAFE),
    lambda d: "GOC" + "SPX-" + text(d, 28, URLSAFE),
    lambda d: "ya" + "29." + text(d, 140, URLSAFE),
    lambda d: "xo" + f"xb-{text(d, 12, string.digits + 'a')[:11]}1-{text(d, 13)}-{text(d, 24)}",
    lambda d: "https://hooks.slack" + f".com/services/T{text(d, 9)}/B{text(d, 9)}/{text(d, 24)}",
    lambda d: "sk_" + "live_" + text(d, 24),
    lambda d: "whs" + "ec_" + text(d, 32),
    lambda d: "SG" + "." + text(d, 22, URLSAFE) + "." + text(d, 43, ALNUM),
    lambda d: "np" + "m_" + text(d, 36),
    lambda d: "py" + "pi-AgEIcHlwaS5vcmc" + text(d, 120, URLSAFE),
    lambda d: "h" + "f_" + text(d, 34),
    lambda d: "r" + "8_" + text(d, 37),
    lambda d: "gs" + "k_" + text(d, 52),
    lambda d: "xa" + "i-" + text(d, 80),
    lambda d: "pp" + "lx-" + text(d, 48),
    lambda d: "do" + "p_v1_" + text(d, 64, HEX),
    lambda d: f"{d.randint(10**8, 10**10 - 1)}:" + "AA" + text(d, 33, ALNUM),
    lambda d: "da" + "pi" + text(d, 32, HEX),
    lambda d: "tsk" + "ey-auth-" + text(d, 17) + "-" + text(d, 32),
    lambda d: "dck" + "r_pat_" + text(d, 27, ALNUM),
    lambda d: "lin" + "_api_" + text(d, 40),
    lambda d: "gl" + "sa_" + text(d, 32) + "_" + text(d, 8, HEX),
    lambda d: "hv" + "s." + text(d, 24),
    lambda d: "shp" + "at_" + text(d, 32, HEX),
    lambda d: "rub" + "ygems_" + text(d, 48, HEX),
    lambda d: "nt" + "n_" + text(d, 46),
    lambda d: "pat" + text(d, 14) + "." + text(d, 64, HEX),
    lambda d: "ey" + f"J{text(d, 30)}.ey" + f"J{text(d, 80)}.{text(d, 43, ALNUM)}",
    lambda d: f"postgres://app:{text(d, 18)}@db.internal:5432/prod",
    lambda d: (
        "https://discord.com/api/web"
        + f"hooks/{text(d, 18, '0123456789a')[:17].replace('a', '1')}/{text(d, 68)}"
    ),
    lambda d: "Account" + "Key=" + text(d, 86) + "==",
    lambda d: "Authorization: Bearer " + text(d, 40),
    lambda d: "tv" + "ly-" + text(d, 32),
    lambda d: "fi" + "gd_" + text(d, 40),
    lambda d: "PM" + "AK-" + text(d, 24, HEX) + "-" + text(d, 34, HEX),
)

SURROUNDINGS = (
    "token for the bot: {}\n",
    "{}\n",
    "export THING='{}'\n",
    'x = "{}"\n',
    "curl -H 'X-Auth: {}' https://example.net\n",
    "see {} and more\n",
    "\x1b[32m{}\x1b[0m\n",
    "value={}&next=1\n",
)
SUFFIXES = ["md", "txt", "sh", "py", "js", "log", "csv", "tf", "ps1", "yaml", "ini", "rb"]


def token_file(draw: Draw) -> Case:
    """A token of known form in any file; redacted or left out."""
    token = draw.choice(TOKENS)(draw)
    body = draw.choice(SURROUNDINGS).format(token)
    data = (prose(draw, draw.randint(0, 30)) + body + prose(draw, draw.randint(0, 30))).encode()
    name = f"{word(draw)}.{draw.choice(SUFFIXES)}"
    if draw.random() < 0.1:
        data, name = data.decode().encode("utf-16"), f"{word(draw)}.txt"
    elif draw.random() < 0.15:
        row = json.dumps({"type": "tool", "text": "before\n" + token + "\nafter"})
        data, name = (row + "\n").encode(), f"{word(draw)}.jsonl"
    return case_of("token", folders(draw) + name, data, "exclude", redact_ok=True, secrets=(token,))


def token_lookalike(draw: Draw) -> Case:
    """Things that look like tokens and are none."""
    lines = (
        "export OPENAI_API_KEY=sk-...",
        "token: ghp_" + draw.choice("xX*0") * 36,
        "ghp_<your token here>, sk-ant-your-key-here",
        f"integrity sha512-{base64.b64encode(draw.randbytes(64)).decode()}",
        f"{text(draw, 40, HEX)}  {word(draw)}",
        f"commit {text(draw, 40, HEX)}",
        f"{text(draw, 8, HEX)}-{text(draw, 4, HEX)}-4{text(draw, 3, HEX)}-a{text(draw, 3, HEX)}-x",
        f"id-{text(draw, 8, HEX)}",
        "postgres://user:password@localhost/db and ${DB_URL}",
        "Authorization: Bearer $TOKEN",
        "curl -u user:password https://example.com",
        f"data:image/png;base64,{base64.b64encode(draw.randbytes(900)).decode()}",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "the prefix xoxb- is for bots, npm_ for packages",
        "const re = /gh[pousr]_[A-Za-z0-9]{36}/",
        "TOKEN: ${{ secrets.DEPLOY_TOKEN }}",
        "".join(draw.choice("ACGT") for _ in range(70)),
        "a{b}@c: http://host:8080/path?at=user@example.com",
    )
    body = "\n".join(draw.sample(lines, draw.randint(1, 6)))
    name = f"{word(draw)}.{draw.choice(SUFFIXES)}"
    return case_of("token-lookalike", folders(draw) + name, prose(draw) + body + "\n", "include")


ENV_NAMES = (
    *(".env", ".env.local", ".env.production", ".env.{w}", ".env.{w}.local", "{w}.env", ".envrc"),
    *(".env.bak", ".env~", ".Env", ".env.old", "env.sh", ".flaskenv", ".env.swp", "..env.swp"),
    *(".env.backup", ".env.1", ".env-{w}", ".ENV.LOCAL", ".env.save", "\uff0eenv"),
)
ENV_LOOKALIKES = (
    *(
        ".env.example",
        ".env.sample",
        ".env.template",
        ".env.{w}.example",
        ".env.dist",
        "env.{w}.md",
    ),
    *("environment.md", "{w}-env.d.ts", "envoy-{w}.yaml", "env/{w}.md", "{w}.environment.txt"),
    *("dotenv-{w}.md", "envelope.py", ".env.defaults"),
)


def env_file(draw: Draw) -> Case:
    """Environment files by name, whatever is in them."""
    name = draw.choice(ENV_NAMES).format(w=word(draw))
    body = draw.choice(("", "DEBUG=1\n", f"API_KEY={text(draw, 40)}\n", prose(draw, 2)))
    return case_of("env-file", folders(draw) + name, body, "exclude")


def env_lookalike(draw: Draw) -> Case:
    """Names that begin with env, and templates without values."""
    name = draw.choice(ENV_LOOKALIKES).format(w=word(draw))
    body = "# copy to .env\nAPI_KEY=\nDB_PASSWORD=change-me\n"
    return case_of("env-lookalike", folders(draw) + name, body, "include")


STORES = (
    *(".ssh/id_rsa", ".ssh/id_ed25519_sk", ".netrc", ".pgpass", ".git-credentials", ".vault-token"),
    *(".aws/credentials", ".config/gcloud/credentials.db", ".config/gh/hosts.yml", ".pypirc"),
    *(".cargo/credentials.toml", ".config/rclone/rclone.conf", "{w}.p12", "{w}.pfx", "{w}.jks"),
    *("{w}.kdbx", "{w}.ppk", "credentials.json", "token.json", "secrets.yaml", "secrets.toml"),
    *(".htpasswd", "config/master.key", ".SSH/ID_RSA", ".Netrc", "credentials.json.bak"),
    *(
        ".password-store/{w}.gpg",
        ".gnupg/private-keys-v1.d/{w}.key",
        ".azure/msal_token_cache.json",
    ),
    *(".terraform.d/credentials.tfrc.json", "passwords.csv", ".my.cnf", "id_rsa.old", ".s3cfg"),
    *(".aws/sso/cache/{w}.json", "keystore/UTC--2026-01-01T00-00-00Z--{w}", ".kaggle/kaggle.json"),
    *(".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".n8n/config"),
    *(".openclaw/credentials/{w}.json", ".hermes/auth.json", ".config/goose/secrets.yaml"),
    *(".ollama/id_ed25519", "{w}/.webui_secret_key", ".local/share/opencode/auth.json"),
    *("agents/{w}/agent/auth-profiles.json", ".config/github-copilot/apps.json", "_netrc"),
)
BROWSER = (
    *(".config/google-chrome/Default/Cookies", ".config/chromium/Profile 1/Login Data"),
    *(".mozilla/firefox/{w}.default/key4.db", ".mozilla/firefox/{w}.default-release/logins.json"),
    *("{w}/cookies.txt", "{w}/.auth/{w}.json", "{w}/storage_state.json", "{w}/Default/Cookies"),
    *(".config/BraveSoftware/Brave-Browser/Default/Cookies", "cookies.sqlite", "{w}/cookies.txt~"),
    *(".config/microsoft-edge/Default/Network/Cookies", "{w}/cookies.sqlite-wal"),
)
CRED_LOOKALIKES = (
    *("{w}-token-report.md", "secrets-of-{w}.md", "docs/netrc-{w}.md", "src/credentials_{w}.py"),
    *("src/passwords/{w}.py", "id_rsa_{w}.md", "docs/secrets.md", "{w}/keystore.md", "tokens.md"),
    *(
        "src/token.ts",
        "password-policy-{w}.md",
        "{w}.keynote.md",
        "cookies.md",
        "src/cookies/{w}.ts",
    ),
    *("recipes/{w}-cookies.txt.md", "auth.py", "src/auth.json.ts", "credential_{w}.go"),
    *(".ssh/config", ".ssh/known_hosts", ".ssh/authorized_keys", ".ssh/id_{w}.pub"),
    *("tests/test_{w}_secret.py", "{w}.env.md", "login-{w}.spec.ts"),
)


def store(draw: Draw) -> Case:
    """Stores of credentials by name."""
    name = draw.choice(STORES).format(w=word(draw))
    return case_of("cred-store", folders(draw) + name, draw.randbytes(80), "exclude")


def browser(draw: Draw) -> Case:
    """Stores of browsers by name."""
    name = draw.choice(BROWSER).format(w=word(draw))
    return case_of("browser", folders(draw) + name, draw.randbytes(80), "exclude")


def cred_lookalike(draw: Draw) -> Case:
    """Work whose name only resembles a secret."""
    name = draw.choice(CRED_LOOKALIKES).format(w=word(draw))
    return case_of("cred-lookalike", folders(draw) + name, prose(draw), "include")


FOLDERS_OUT = (
    *("node_modules/{w}/index.js", "lib/python3.13/site-packages/{w}.py", "__pycache__/{w}.pyc"),
    *(".mypy_cache/{w}.json", ".pytest_cache/{w}", ".ruff_cache/{w}", ".tox/py/{w}.py", ".nox/{w}"),
    *(".venv/bin/{w}", ".cache/{w}/x", ".next/cache/{w}", ".parcel-cache/{w}", ".gradle/8/{w}"),
    *("bower_components/{w}.js", ".terraform/providers/{w}", ".cargo/registry/src/{w}.rs"),
    *(".config/Code/Cache/Cache_Data/{w}", ".config/Cursor/Code Cache/js/{w}", "Pods/{w}/x.m"),
    *("vendor/bundle/ruby/3/{w}.rb", ".npm/_cacache/{w}", ".m2/repository/{w}.jar", ".eggs/{w}"),
)
MARKS: tuple[tuple[str, str, bytes], ...] = (
    ("{w}/bin/activate", "{w}/pyvenv.cfg", b"home = /usr/bin\n"),
    ("env/lib/{w}.py", "env/pyvenv.cfg", b"home = /usr/bin\n"),
    ("envs/{w}/lib/x.so", "envs/{w}/conda-meta/history", b""),
    ("{w}/blob", "{w}/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n# x\n"),
    ("target/debug/{w}.rlib", "Cargo.toml", b"[package]\n"),
    ("target/classes/{w}.class", "pom.xml", b"<project/>"),
    ("vendor/github.com/{w}.go", "vendor/modules.txt", b"# x\n"),
    ("vendor/{w}/x.php", "vendor/autoload.php", b"<?php\n"),
    ("deps/{w}/mix.exs", "mix.exs", b""),
)
NO_MARKS: tuple[tuple[str, str, bytes], ...] = (
    ("{w}/blob.md", "{w}/CACHEDIR.TAG", b" Signature: 8a477f597d28d172789f06886806bc55\n"),
    ("{w}/blob.md", "{w}/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc56\n"),
    ("target/{w}.md", "cargo-toml.md", b""),
    ("vendor/{w}.md", "README.md", b""),
    ("deps/{w}.md", "mix.md", b""),
    ("env/{w}.md", "env/README.md", b""),
    ("venv/{w}.md", "pyvenv.cfg.md", b""),
)
LOOKALIKE_FOLDERS = (
    *("src/cache/{w}.py", "docs/node_modules.md", "vendor/{w}.md", "target/{w}.md", "build/{w}.md"),
    *("dist/{w}.md", "notes/deps/{w}.md", "env/{w}.md", "geocache/{w}.md", "site-packages.md"),
    *("notes/cache", "{w}/CACHEDIR.TAG.md", "lib/{w}.py", "pods/{w}.md", "src/venv_{w}.py"),
    *("tox.ini", "code cache/{w}.md", "library/caches/{w}.md", "my_node_modules/{w}.md"),
)


def folder_out(draw: Draw) -> Case:
    """Caches, environments and dependencies by name or by mark."""
    top, name = folders(draw), word(draw)
    if draw.random() < 0.5:
        path = draw.choice(FOLDERS_OUT).format(w=name)
        return case_of("dep-dir", top + path, prose(draw, 1), "exclude")
    path, mark, data = draw.choice(MARKS)
    context = ((top + mark.format(w=name), data),)
    return case_of("dep-dir", top + path.format(w=name), prose(draw, 1), "exclude", context=context)


def folder_lookalike(draw: Draw) -> Case:
    """Folders and files that share a name with a cache and are work."""
    top, name = folders(draw), word(draw)
    if draw.random() < 0.6:
        path = draw.choice(LOOKALIKE_FOLDERS).format(w=name)
        return case_of("dep-lookalike", top + path, prose(draw), "include")
    path, mark, data = draw.choice(NO_MARKS)
    context = ((top + mark.format(w=name), data),)
    return case_of(
        "dep-lookalike", top + path.format(w=name), prose(draw), "include", context=context
    )


def structured(draw: Draw) -> Case:
    """Settings with a login among them."""
    secret = text(draw, draw.randint(24, 48))
    coded = base64.b64encode(f"me:{secret}".encode()).decode()
    table: tuple[tuple[str, str, str], ...] = (
        (
            ".git/config",
            f'[remote "origin"]\n\turl = https://me:{secret}@git.example/o/r\n',
            secret,
        ),
        (".git/config", f"[http]\n\textraheader = AUTHORIZATION: basic {coded}\n", coded),
        (".gitconfig", f'[url "https://{secret}@git.example/"]\n\tinsteadOf = x\n', secret),
        (".npmrc", f"save-exact=true\n//r.example/:_authToken={secret}\n", secret),
        ("pip.conf", f"[global]\nindex-url = https://u:{secret}@r.example/simple\n", secret),
        (".m2/settings.xml", f"<settings><password>{secret}</password></settings>", secret),
        (".docker/config.json", json.dumps({"auths": {"r": {"auth": coded}}}), coded),
        (".kube/config", f"users:\n- name: me\n  user:\n    token: {secret}\n", secret),
        (".claude.json", json.dumps({"mcpServers": {"x": {"env": {"X_TOKEN": secret}}}}), secret),
        (".mcp.json.bak", json.dumps({"a": {"headers": {"X-Api-Key": secret}}}, indent=2), secret),
        (".mcp.json", json.dumps({"a": {"args": ["--api-key", secret, "-v"]}}), secret),
        (".codex/config.toml", f'[mcp_servers.x.env]\nX_API_KEY = "{secret}"\n', secret),
        (".codex/config.toml", f'[mcp_servers.x]\nenv = {{ X_KEY = "{secret}" }}\n', secret),
        ("openclaw.json", json.dumps({"channels": {"x": {"botToken": secret}}}), secret),
        (".aider.conf.yml", f"model: x\nopenai-api-key: {secret}\n", secret),
        ("terraform.tfstate", json.dumps({"r": [{"attributes": {"password": secret}}]}), secret),
        ("app.properties", f"server.port=8080\nspring.datasource.password={secret}\n", secret),
        ("config.yaml", f"db:\n  host: x\n  password: '{secret}'\n", secret),
        ("app.toml", f'[db]\npassword = "{secret}"\nport = 1\n', secret),
        ("settings.ini", f"[smtp]\nsmtp_password = {secret}\n", secret),
        ("k8s.yaml", f"kind: Secret\nstringData:\n  some-name: {secret}\n", secret),
        ("NuGet.Config", f'<add key="ClearTextPassword" value="{secret}" />', secret),
    )
    name, body, value = draw.choice(table)
    return case_of(
        "structured", folders(draw) + name, body, "exclude", redact_ok=True, secrets=(value,)
    )


def structured_clean(draw: Draw) -> Case:
    """The same settings without a value."""
    name, body = draw.choice(
        (
            (".git/config", '[remote "origin"]\n\turl = https://me@git.example/o/r.git\n'),
            (".npmrc", "//r.example/:_authToken=${NPM_TOKEN}\nengine-strict=true\n"),
            ("pip.conf", "[global]\nindex-url = https://r.example/simple\n"),
            (".docker/config.json", json.dumps({"credsStore": "pass"})),
            (".kube/config", "users:\n- name: me\n  user:\n    exec:\n      command: aws\n"),
            (".claude.json", json.dumps({"numStartups": 3, "projects": {"/w": {"a": ["hi"]}}})),
            (".mcp.json", json.dumps({"a": {"env": {"X_API_KEY": "${X_API_KEY}", "DEBUG": "1"}}})),
            ("openclaw.json", json.dumps({"botToken": {"source": "env", "id": "X_BOT_TOKEN"}})),
            ("config.yaml", "model: x\napi_key_env: OPENROUTER_API_KEY\nmax_tokens: 4096\n"),
            ("app.properties", "spring.datasource.password=${DB_PASSWORD}\n"),
            ("app.toml", '[db]\npassword_file = "/run/secrets/db"\n'),
            ("k8s.yaml", "kind: Secret\ndata:\n  tls.key: <base64 of your key>\n"),
            ("i18n.yml", "en:\n  password: Password\n  token: Token\n"),
            ("variables.tf", 'variable "db_password" {\n  sensitive = true\n}\n'),
            (".bash_history", f"ls\ncd {word(draw)}\ngit status\n"),
            ("schema.json", json.dumps({"properties": {"token": {"type": "string"}}})),
        )
    )
    return case_of("structured-clean", folders(draw) + name, body, "include")


AGENT_STATE = (
    *(".claude/projects/{w}/memory/MEMORY.md", ".claude/CLAUDE.md", ".codex/AGENTS.md"),
    *(".claude/projects/{w}/{w}.jsonl", ".hermes/memories/{w}.md", ".hermes/SOUL.md"),
    *(
        ".openclaw/workspace/memory/2026-01-02.md",
        "{w}/.aider.chat.history.md",
        ".gemini/GEMINI.md",
    ),
    *(".gemini/tmp/{w}/chat.json", ".claude/skills/{w}/SKILL.md", ".codex/sessions/2026/{w}.jsonl"),
    *(
        ".cursor/rules/{w}.md",
        ".windsurfrules",
        ".letta/{w}.af",
        ".crewai/memory/{w}.lance/0.lance",
    ),
    *(".git/objects/de/{w}", ".git/logs/HEAD", ".git/refs/heads/{w}", ".git/hooks/pre-commit"),
)


def agent_state(draw: Draw) -> Case:
    """What an agent has made: memories, sessions, instructions, unpushed code."""
    name = draw.choice(AGENT_STATE).format(w=word(draw))
    return case_of("agent-state", folders(draw) + name, prose(draw), "include")


def path_secret(draw: Draw) -> Case:
    """A path that itself holds a token."""
    token = draw.choice(TOKENS[:12])(draw)
    name = draw.choice(("{}/list.csv", "login {}.md", "{}.txt", "a-{}")).format(token)
    return case_of("path-secret", folders(draw) + name, "x\n", "exclude", secrets=(token,))


def database(draw: Draw) -> Case:
    """An editor's database with a login row beside chats."""
    secret = text(draw, 48)
    rows = [(f"cursorAuth/{word(draw)}", secret), ("composer.data", prose(draw))]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
        connection.executemany("INSERT INTO ItemTable VALUES (?, ?)", rows)
        connection.commit()
        data = connection.serialize()
    path = folders(draw) + "User/globalStorage/state.vscdb"
    return case_of("structured", path, data, "exclude", redact_ok=True, secrets=(secret,))


def case_of(  # noqa: PLR0913 - a row of a case
    kind: str,
    path: str,
    content: str | bytes,
    expect: str,
    *,
    redact_ok: bool = False,
    context: tuple[tuple[str, bytes], ...] = (),
    secrets: tuple[str, ...] = (),
) -> Case:
    """Return a case that has no id yet."""
    data = content.encode() if isinstance(content, str) else content
    return Case(
        id="",
        kind=kind,
        path=path.encode(),
        content=data,
        expect=expect,
        redact_ok=redact_ok,
        context=tuple((name.encode(), body) for name, body in context),
        secrets=tuple(one.encode() for one in secrets),
    )


KINDS: dict[str, Make] = {
    "pk-header": key_file,
    "pk-encoding": key_in_other_letters,
    "pk-prose": key_prose,
    "public-crypto": public_thing,
    "token": token_file,
    "token-lookalike": token_lookalike,
    "env-file": env_file,
    "env-lookalike": env_lookalike,
    "cred-store": store,
    "browser": browser,
    "cred-lookalike": cred_lookalike,
    "dep-dir": folder_out,
    "dep-lookalike": folder_lookalike,
    "structured": structured,
    "structured-clean": structured_clean,
    "agent-state": agent_state,
    "path-secret": path_secret,
    "database": database,
}
"""How an instance of each kind is made."""
