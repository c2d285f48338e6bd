"""Makes fresh instances of the kinds of work that must stay, and of stores by their place.

A second part of `fresh`, with the same rules: nothing stands here as it is stored.
Start at `MORE_KINDS`.
"""
# ruff: noqa: ARG005 - drawn from a seed on purpose

import base64
import json
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO

from tests.policy.cases import Case
from tests.policy.fresh import (
    HEX,
    LABELS,
    PRIVATE,
    URLSAFE,
    Draw,
    Make,
    begin,
    case_of,
    folders,
    prose,
    text,
    word,
)


def _named(kind: str, expect: str, names: tuple[str, ...], bodies: tuple[str, ...]) -> Make:
    """Return a maker of files of one of ``names`` with one of ``bodies``."""

    def make(draw: Draw) -> Case:
        name = draw.choice(names).format(w=word(draw), n=draw.randint(1, 99))
        body = draw.choice(bodies).format(s=text(draw, 40), p=prose(draw, 2))
        return case_of(kind, folders(draw) + name, body, expect)

    return make


AGENT_SECRETS = (
    *(".claude/.credentials.json", ".codex/auth.json", ".config/goose/secrets.yaml"),
    *(".openclaw/secrets.json", ".n8n/config", ".ollama/id_ed25519", "{w}/.webui_secret_key"),
    *(".local/share/opencode/auth.json", ".hermes/auth.json", ".gemini/oauth_creds.json"),
    *(".qwen/oauth_creds.json", ".openclaw/credentials/{w}.json", ".mcp-auth/{w}/tokens.json"),
    *("agents/{w}/agent/auth-profiles.json", ".config/github-copilot/hosts.json"),
    *(".openhands/secrets.json", ".clawdbot/credentials/{w}.json", ".codex/auth.json.bak"),
    *(".CLAUDE/.Credentials.json", ".n8n/config~", ".config/io.datasette.llm/keys.json"),
)
BROWSER_LOOKALIKES = (
    *(
        "recipes/{w}-cookies.md",
        "bookmarks.html",
        "e2e/{w}.spec.ts",
        "cookies.md",
        "cookies/{w}.md",
    ),
    *("docs/login-data.md", "profiles/{w}.md", "{w}/places.sqlite.md", "src/cookies.py"),
    *("default/{w}.md", "firefox/{w}.md", "docs/storage_state.md", "web_data.py", "history.md"),
)
CACHES = (
    *("{w}/__pycache__/{w}.cpython-31{n}.pyc", ".mypy_cache/3.1/{w}.json", ".ruff_cache/0.{n}/{w}"),
    *(".pytest_cache/v/cache/{w}", "web/.next/cache/{w}/{n}.pack", "web/.parcel-cache/{w}.mdb"),
    *(".gradle/caches/{w}.lock", ".gradle/8.{n}/{w}.lock", ".config/{w}/Cache/Cache_Data/f_{n}"),
    *(".config/{w}/CachedData/{n}/{w}.bin", ".cache/{w}/{n}", ".turbo/{w}.log", ".vite/{w}.js"),
    *(
        ".sass-cache/{w}",
        ".hypothesis/{w}",
        ".nyc_output/{w}.json",
        ".dart_tool/{w}",
        "{w}/.ccache/x",
    ),
    *(".config/{w}/GPUCache/data_{n}", ".yarn/cache/{w}.zip", "{w}/Library/Caches/{w}/x"),
)
CACHE_LOOKALIKES = (
    *("src/cache/{w}.py", "docs/cache-{w}.md", "notes/CACHEDIR.TAG.md", "src/pycache_{w}.py"),
    *("geocache/{w}.md", "cache/{w}.md", "caches/{w}.md", "my.cache.md", "{w}-cache/{n}.md"),
    *(
        "lib/cached_data.py",
        "gpucache/{w}.md",
        "cache_data/{w}.csv",
        "turbo/{w}.md",
        "vite.config.ts",
    ),
)
VENVS = (
    *(".venv/bin/{w}", ".tox/py31{n}/lib/{w}.py", ".nox/{w}/lib/{w}.py", ".nodeenv/bin/{w}"),
    *(".pixi/envs/{w}", ".virtualenvs/{w}/bin/python", ".pyenv/versions/3.{n}/bin/{w}"),
    *(".nvm/versions/node/v{n}/bin/{w}", ".direnv/python-3/{w}", ".VENV/bin/{w}"),
)
VENV_LOOKALIKES = (
    *("venv.md", "env/{w}.md", "src/venv_{w}.py", "tox.ini", "venv/{w}.md", "noxfile.py"),
    *("docs/virtualenvs.md", "environment.yml", "pyvenv.md", "conda-meta.md", "envs/{w}.md"),
)
BODIES = ("x = 1\n", "{p}", "", "{p}token {s}\n")
PLAIN = ("x = 1\n", "{p}", "")


def marked_environment(draw: Draw) -> Case:
    """An environment outside its usual names, known by what lies in it."""
    top, name = folders(draw), word(draw)
    path, mark = draw.choice(
        (
            (f"{name}/bin/activate", f"{name}/pyvenv.cfg"),
            (f"ENV/lib/{name}.py", "ENV/pyvenv.cfg"),
            (f"tools/{name}/lib/x.py", f"tools/{name}/bin/activate_this.py"),
            (f"conda/envs/{name}/lib/x.so", f"conda/envs/{name}/conda-meta/history"),
        )
    )
    if draw.random() < 0.4:
        return _named("venv-dir", "exclude", VENVS, BODIES)(draw)
    context = ((top + mark, b"home = /usr\n"),)
    return case_of("venv-dir", top + path, "x = 1\n", "exclude", context=context)


def late_tag(draw: Draw) -> Case:
    """A folder whose cache tag is none: the signature stands too late, or is another."""
    if draw.random() < 0.7:
        return _named("cache-lookalike", "include", CACHE_LOOKALIKES, PLAIN)(draw)
    top, name = folders(draw), word(draw)
    signature = "Signature: 8a477f597d28d172789f06886806bc55"
    tag = draw.choice((f"# a tag\n{signature}\n", signature[:-1], signature.lower(), ""))
    context = ((f"{top}{name}/CACHEDIR.TAG", tag.encode()),)
    return case_of(
        "cache-lookalike", f"{top}{name}/plan.md", prose(draw), "include", context=context
    )


def path_without_secret(draw: Draw) -> Case:
    """A path with digests, titles and numbers, of which none is a credential."""
    name = draw.choice(
        (
            f"{text(draw, 40, HEX)}.md",
            f"How to {word(draw)} a {word(draw)}.md",
            f"{text(draw, 64, HEX)}/{word(draw)}.md",
            f"sk-{word(draw)}-{word(draw)}.md",
            f"2026-11-{draw.randint(10, 30)} {word(draw)} {text(draw, 8, HEX)}.md",
            f"ghp_{word(draw)}.md",
            "-".join(text(draw, size, HEX) for size in (8, 4, 4, 4, 12)) + ".md",
        )
    )
    return case_of("path-secret", folders(draw) + name, prose(draw), "include")


def guide(draw: Draw) -> Case:
    """Documentation that prints a whole opening boundary: it contains a header."""
    line = draw.choice(
        (
            "If the first line is {} the key is not encrypted.\n",
            "    {}\n    ...\n",
            "```\n{}\n```\n",
            "> {}\n",
            "| pem | `{}` |\n",
        )
    ).format(begin(draw.choice(LABELS)))
    name = f"docs/{word(draw)}.{draw.choice(('md', 'rst', 'txt', 'html', 'py', 'adoc'))}"
    return case_of("pk-prose", folders(draw) + name, prose(draw) + line + prose(draw), "exclude")


def _archive(draw: Draw) -> bytes:
    held = BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:t>{prose(draw)}</w:t>")
    return held.getvalue()


def _transcript(draw: Draw) -> str:
    rows = [
        {"type": draw.choice(("user", "tool_use", "text")), "text": prose(draw, 2), "tokens": n}
        for n in range(draw.randint(1, 30))
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


WORK: tuple[tuple[str, Callable[[Draw], str | bytes]], ...] = (
    ("i18n/{w}.yml", lambda d: f"pt:\n  password: Senha\n  token: {word(d)}\n"),
    ("api/openapi.yaml", lambda d: "securitySchemes:\n  key:\n    type: apiKey\n    in: header\n"),
    (
        "infra/{w}.tf",
        lambda d: 'variable "db_password" {\n  type = string\n  sensitive = true\n}\n',
    ),
    ("docs/{w}.md", lambda d: 'curl -H "Authorization: Bearer $TOKEN" https://x.example\n'),
    (
        "tests/test_{w}.py",
        lambda d: f'def test_{word(d)}(c):\n    assert c.login("wrong") == 401\n',
    ),
    ("patches/{w}.patch", lambda d: f"From {text(d, 40, HEX)}\nSubject: rotate keys\n{prose(d)}"),
    (".git/objects/de/{w}", lambda d: zlib.compress(b"blob 9\0" + prose(d).encode())),
    (".git/hooks/pre-commit", lambda d: f"#!/bin/sh\n{word(d)} protect --staged\n"),
    ("figures/{w}.png", lambda d: b"\x89PNG\r\n\x1a\n" + d.randbytes(d.randint(9, 9000))),
    ("audio/{w}.ogg", lambda d: b"OggS" + d.randbytes(3000)),
    ("data/{w}.parquet", lambda d: b"PAR1" + d.randbytes(3000) + b"PAR1"),
    ("data/{w}.bin", lambda d: d.randbytes(d.randint(0, 50_000))),
    ("drafts/{w}.txt", lambda d: f"private notes {prose(d)}".encode("utf-16")),
    ("drafts/{w}.docx", _archive),
    (
        "paper/{w}.bib",
        lambda d: f"@article{{{word(d)}78, title={{A Method}}, pages={{120--126}}}}\n",
    ),
    ("src/csrf.js", lambda d: "const token = document.querySelector('meta[name=csrf]').content\n"),
    ("src/hash.go", lambda d: f'const sum = "{text(d, 64, HEX)}"\n'),
    (
        "src/{w}.c",
        lambda d: f'static const char t[]="{base64.b64encode(d.randbytes(60)).decode()}";',
    ),
    (
        "logs/{w}.log",
        lambda d: f"2026-11-29T10:00:00Z INFO tokens={d.randint(1, 9999)} {word(d)}\n",
    ),
    ("transcripts/{w}.jsonl", _transcript),
    ("prompts/{w}.md", lambda d: "Never print API keys, tokens or passwords.\n" + prose(d)),
    ("k8s/{w}.yaml", lambda d: "kind: Secret\ndata:\n  tls.key: <base64 of your key>\n"),
    ("config/logging.yaml", lambda d: "version: 1\nformatters: {plain: {format: '%(message)s'}}\n"),
    ("config/{w}.yaml", lambda d: f"build: {text(d, 40, HEX)}\nrevision: {text(d, 64, HEX)}\n"),
    ("docs/jwt-{w}.md", lambda d: "A JWT has three parts: header.payload.signature\n"),
    ("src/{w}.py", lambda d: f"PAT = r'gh[pousr]_[A-Za-z0-9]{{36}}'  # {word(d)}\n"),
    ("src/p12_{w}.py", lambda d: "def read(path): ...\n"),
    ("schema/{w}.schema.json", lambda d: json.dumps({"properties": {"token": {"type": "string"}}})),
    ("{w}/{{{{cookiecutter.name}}}}/README.md", prose),
    ("large/{w}.log", lambda d: prose(d, 40) * d.randint(1, 60)),
    ("data/{w}.csv", lambda d: "".join(f"{n},{d.random()},{word(d)}\n" for n in range(200))),
    ("notes/{w}.org", lambda d: f"* {PRIVATE} ceremony\n  it is held on {word(d)}\n"),
    ("src/{w}.sh", lambda d: 'API_KEY="$(pass show api)"\nexport TOKEN="${TOKEN:?}"\n'),
    ("ci/{w}.yml", lambda d: "env:\n  TOKEN: ${{ secrets.TOKEN }}\n  KEY: $(KEY)\n"),
    ("urls/{w}.md", lambda d: f"https://x.example/{text(d, 22, URLSAFE)}?v={text(d, 11, HEX)}\n"),
)


def work(draw: Draw) -> Case:
    """Sources, documents, data and media as agents make them."""
    name, body = draw.choice(WORK)
    path = folders(draw) + name.format(w=word(draw))
    return case_of("work", path, body(draw), "include")


MORE_KINDS: dict[str, Make] = {
    "agent-secret": _named("agent-secret", "exclude", AGENT_SECRETS, BODIES),
    "browser-lookalike": _named("browser-lookalike", "include", BROWSER_LOOKALIKES, PLAIN),
    "cache-dir": _named("cache-dir", "exclude", CACHES, BODIES),
    "cache-lookalike": late_tag,
    "venv-dir": marked_environment,
    "venv-lookalike": _named("venv-lookalike", "include", VENV_LOOKALIKES, PLAIN),
    "path-without-secret": path_without_secret,
    "guide": guide,
    "work": work,
}
"""How an instance of each further kind is made."""
