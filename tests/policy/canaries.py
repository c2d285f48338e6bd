"""A tree of an agent's home with thousands of secrets in it, each of which must occur nowhere.

Every content rule, every pattern of every path rule, every mark, settings, databases,
attributes, links, names and encodings. Each secret is drawn, and beside what its rule asks for
holds letters that nothing else in the tree has. Start at `plant`.
"""

import base64
import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from durarepo.policy.content_table import CONTENT_RULES
from durarepo.policy.path_table import PATH_RULES
from durarepo.policy.rules import ContentRule, PathRule, Scope
from durarepo.policy.scanner import open_engine
from durarepo.policy.scanning import scan_whole, shared_rules
from tests.policy.cases import Case
from tests.policy.drawn import draw_match
from tests.policy.fresh import (
    MARKS,
    TOKENS,
    URLSAFE,
    database,
    key_file,
    key_in_other_letters,
    path_secret,
    pem,
    prose,
    structured,
    text,
    word,
)
from tests.policy.fresh_work import work

Draw = random.Random

_MARKER = 24
_TRIES = 60
_OF_EACH_RULE = 13
_OF_EACH_PATTERN = 3
_NOT_DRAWN = {"key-base64", "key-jwk", "token-basic", "cookie-json", "cookie-header"}
"""Rules whose checks no text drawn from the pattern alone passes; they are made by hand."""
_BEFORE = {"token-bearer": b"B"}
"""Letters that only the probe of a rule asks for."""


@dataclass
class Planted:
    """What was planted.

    ``values`` must occur nowhere, ``names`` nowhere but in the sealed ledger, and no file of
    one of ``unopened`` may be opened, unless another of that name has to be read (``judged``).
    ``kept`` are texts that have to be found, as a check of the search itself.
    """

    root: Path
    values: list[bytes] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    unopened: set[str] = field(default_factory=set)
    judged: set[str] = field(default_factory=set)
    kept: list[bytes] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    _number: int = 0

    def place(self, name: str) -> Path:
        """Return a place of its own for a path, with all folders above it made."""
        self._number += 1
        path = self.root / f"p{self._number % 40}" / f"q{self._number}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def add(self, kind: str, name: str, data: bytes, *values: bytes) -> Path:
        """Plant a file that holds ``values``."""
        path = self.place(name)
        path.write_bytes(data)
        self.note(kind, *values)
        if not kind.startswith(("path", "mark", "second")):
            self.judged.add(path.name)
        return path

    def note(self, kind: str, *values: bytes) -> None:
        """Take note of values."""
        assert all(len(one) >= 12 for one in values), (kind, values)
        self.values += values
        self.kinds[kind] += len(values)


def plant(root: Path, seed: str) -> Planted:
    """Make the tree below ``root``."""
    draw, planted = random.Random(seed), Planted(root)  # noqa: S311 - secrets of a test
    for rule in CONTENT_RULES:
        for _ in range(_OF_EACH_RULE if rule.pattern and rule.id not in _NOT_DRAWN else 0):
            _plant_content(planted, draw, rule)
    for path_rule in PATH_RULES * _OF_EACH_PATTERN:
        for pattern in path_rule.files:
            _plant_name(planted, draw, path_rule, pattern)
        for pattern in path_rule.folders:
            _plant_folder(planted, draw, path_rule, pattern)
    for make, count in _BY_HAND.items():
        for _ in range(count):
            make(planted, draw)
    return planted


def _marker(draw: Draw) -> str:
    return text(draw, _MARKER)


# --- by content ---


def _plant_content(planted: Planted, draw: Draw, rule: ContentRule) -> None:
    match, value = _drawn(draw, rule)
    if rule.scope is Scope.SPAN:
        name, data = _carried(draw, match)
        planted.add(rule.id, name, data, value)
        return
    marker = _marker(draw).encode()
    before = b"" if rule.at_start else prose(draw, draw.randint(0, 5)).encode()
    name = f"{word(draw)}.{draw.choice(('txt', 'md', 'log', 'bin', 'py', 'jsonl'))}"
    planted.add(rule.id, name, before + match + b"\n" + marker + b"\n", marker)


def _drawn(draw: Draw, rule: ContentRule) -> tuple[bytes, bytes]:
    """Return a match of a rule that the policy knows, and its value."""
    pattern = re.compile(rule.pattern.encode("latin-1"), re.DOTALL)
    group = "secret" if "secret" in pattern.groupindex else 0
    for _ in range(_TRIES):
        match = _BEFORE.get(rule.id, b"") + draw_match(draw, rule.pattern)
        around = match + b"\n\n\n\n" if rule.at_start else b"see " + match + b"\nend"
        found = scan_whole(around, shared_rules(), open_engine())
        value = pattern.search(around)
        if value is not None and rule.id in found.whole | found.spans and len(value[group]) >= 6:
            return match, value[group] if len(value[group]) >= 12 else match
    raise AssertionError(f"nothing drawn from the pattern of {rule.id} is found")


def _carried(draw: Draw, match: bytes) -> tuple[str, bytes]:
    shown = match.decode("latin-1")
    pick = draw.randrange(6) if "\\" not in shown else draw.randrange(1, 6)
    around = (prose(draw, 2), prose(draw, 2))
    if pick == 0:
        row = {"type": "tool", "out": json.dumps({"stdout": f"before\n{shown}\nafter"})}
        return f"{word(draw)}.jsonl", json.dumps(row).encode() + b"\n"
    if pick == 1:
        return f"{word(draw)}.txt", f"{around[0]}{shown} \n{around[1]}".encode("utf-16")
    if pick == 2:
        return f"{word(draw)}.py", f"# {around[0]}x = '''{shown}'''\n".encode("latin-1")
    form = draw.choice(("{} \n", "- {} \n", "| {} | x |\n", "> {} \n", "\x1b[1m{} \x1b[0m\n"))
    name = f"{word(draw)}.{draw.choice(('md', 'log', 'csv', 'org'))}"
    return name, (around[0] + form.format(shown) + around[1]).encode("latin-1")


# --- by path ---


def _plant_name(planted: Planted, draw: Draw, rule: PathRule, pattern: str) -> None:
    unique, marker = "w" + text(draw, 12), _marker(draw).encode()
    above, _, last = pattern.rpartition("/")
    name = f"{above.replace('*', word(draw))}/{last.replace('*', unique)}".lstrip("/")
    path = planted.add(f"path {rule.id}", name, marker, marker)
    if unique in last.replace("*", unique):
        planted.names.append(unique.encode())
    planted.unopened.add(path.name)


def _plant_folder(planted: Planted, draw: Draw, rule: PathRule, pattern: str) -> None:
    inside, marker = "n" + text(draw, 12), _marker(draw).encode()
    name = f"{pattern.replace('*', word(draw))}/{inside}.dat"
    path = planted.add(f"path {rule.id}", name, marker, marker)
    planted.names.append(inside.encode())
    planted.unopened.add(path.name)


def _plant_mark(planted: Planted, draw: Draw) -> None:
    path, mark, data = draw.choice(MARKS)
    above, inside, marker = word(draw), "n" + text(draw, 12), _marker(draw).encode()
    folder = path.format(w=above).rpartition("/")[0]
    hidden = planted.add("mark", f"{folder}/{inside}.x", marker, marker)
    top = hidden.parents[folder.count("/") + 1]
    place = top / mark.format(w=above)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    planted.names.append(inside.encode())
    planted.unopened.add(hidden.name)


def _plant_path_secret(planted: Planted, draw: Draw) -> None:
    case, marker = path_secret(draw), _marker(draw).encode()
    (token,) = case.secrets
    path = planted.add("path-secret", case.path.decode(), marker, token, marker)
    planted.unopened.add(path.name)


# --- by hand ---


def _plant_key(planted: Planted, draw: Draw) -> None:
    make: Callable[[Draw], Case] = draw.choice((key_file, key_in_other_letters))
    case, marker = make(draw), _marker(draw).encode()
    planted.add("key", case.path.decode(), case.content + b"\n" + marker, marker)


def _plant_key_in_base64(planted: Planted, draw: Draw) -> None:
    marker = _marker(draw)
    coded = base64.b64encode((" " * draw.randrange(3) + pem(draw) + marker).encode())
    planted.add("key-base64", "secret.yaml.txt", b"data: " + coded + b"\n", marker.encode())


def _plant_structured(planted: Planted, draw: Draw) -> None:
    case = structured(draw)
    planted.add("structured", case.path.decode(), case.content, *case.secrets)


def _plant_database(planted: Planted, draw: Draw) -> None:
    case = database(draw)
    planted.add("database", case.path.decode(), case.content, *case.secrets)


def _plant_jwk(planted: Planted, draw: Draw) -> None:
    value = text(draw, 43, URLSAFE)
    key = {"kty": "OKP", "crv": "Ed25519", "x": text(draw, 43, URLSAFE), "d": value}
    planted.add("key-jwk", "jwks.txt", json.dumps({"keys": [key]}).encode(), value.encode())


def _plant_basic(planted: Planted, draw: Draw) -> None:
    coded = base64.b64encode(f"me:{text(draw, 24)}".encode())
    planted.add("token-basic", "call.md", b"Authorization: Basic " + coded + b"\n", coded)


def _plant_cookie(planted: Planted, draw: Draw) -> None:
    value = text(draw, 40)
    if draw.random() < 0.5:
        planted.add("cookie", "http.log", f"Cookie: sid={value}\n".encode(), value.encode())
        return
    jar = {"cookies": [{"domain": "x.example", "name": "sid", "value": value, "path": "/"}]}
    planted.add("cookie", "session.json", json.dumps(jar).encode(), value.encode())


def _plant_transcript(planted: Planted, draw: Draw) -> None:
    tokens = [draw.choice(TOKENS[:35])(draw) for _ in range(20)]
    rows = [{"n": n, "text": f"{prose(draw)}\n{one} \n"} for n, one in enumerate(tokens)]
    data = "".join(json.dumps(row) + "\n" for row in rows)
    planted.add("transcript", "run.jsonl", data.encode(), *(one.encode()[-20:] for one in tokens))


def _plant_attribute(planted: Planted, draw: Draw) -> None:
    token = TOKENS[0](draw).encode()
    path = planted.place("attribute.md")
    path.write_text(prose(draw))
    size = draw.choice((0, 0, 2500))  # the large ones are kept apart from the entry
    os.setxattr(path, "user.note", b"y" * size + b"\n" + token)
    planted.note("attribute", token)


def _plant_link(planted: Planted, draw: Draw) -> None:
    token = TOKENS[0](draw)
    os.symlink(f"/srv/{token}/x", planted.place("link"))
    planted.note("link target", token.encode())


def _plant_second_name(planted: Planted, draw: Draw) -> None:
    marker = _marker(draw).encode()
    path = planted.add("second name", ".netrc", marker, marker)
    os.link(path, path.parent / "harmless.md")


def _plant_work(planted: Planted, draw: Draw) -> None:
    case, marker = work(draw), "k" + text(draw, 20)
    path = planted.place(f"{marker}/{Path(case.path.decode()).name}")
    path.write_bytes(case.content)
    planted.judged.add(path.name)
    planted.kept.append(marker.encode())


_BY_HAND: dict[Callable[[Planted, Draw], None], int] = {
    _plant_mark: 100,
    _plant_path_secret: 120,
    _plant_key: 500,
    _plant_key_in_base64: 100,
    _plant_structured: 400,
    _plant_database: 30,
    _plant_jwk: 40,
    _plant_basic: 40,
    _plant_cookie: 60,
    _plant_transcript: 20,
    _plant_attribute: 80,
    _plant_link: 80,
    _plant_second_name: 60,
    _plant_work: 150,
}
