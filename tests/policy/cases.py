"""Reads the labelled cases and lays them out, each in a root of its own.

Source: fixtures/cases/README.md. Start at `read_cases`.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "cases" / "cases.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case, decoded; ``context`` are further files of its tree."""

    id: str
    kind: str
    path: bytes
    content: bytes
    expect: str
    strength: str = "clause"
    redact_ok: bool = False
    scored: bool = True
    context: tuple[tuple[bytes, bytes], ...] = ()
    secrets: tuple[bytes, ...] = ()

    def accepts(self, decision: str) -> bool:
        """Return whether a decision is right for this case."""
        return decision == self.expect or (self.redact_ok and decision == "redact")


def read_cases() -> list[Case]:
    """Return all cases of the file."""
    with FILE.open(encoding="utf-8") as lines:
        return [_case(json.loads(line)) for line in lines]


def lay_out(case: Case, root: Path) -> Path:
    """Write a case and its context below ``root``; return the folder that plays its root."""
    top = root / case.id
    for path, content in ((case.path, case.content), *case.context):
        target = top / path.decode()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return top


def _case(fields: dict[str, object]) -> Case:
    context = fields.get("context", [])
    secrets = fields.get("secrets_b64", [])
    assert isinstance(context, list)
    assert isinstance(secrets, list)
    return Case(
        id=str(fields["id"]),
        kind=str(fields["kind"]),
        path=_path(fields),
        content=_content(fields),
        expect=str(fields["expect"]),
        strength=str(fields["strength"]),
        redact_ok=fields.get("redact_ok") is True,
        scored=fields.get("scored", True) is True,
        context=tuple((_path(one), _content(one)) for one in context),
        secrets=tuple(base64.b64decode(one) for one in secrets),
    )


def _path(fields: dict[str, object]) -> bytes:
    if "path_b64" in fields:
        return base64.b64decode(str(fields["path_b64"]))
    return str(fields["path"]).encode()


def _content(fields: dict[str, object]) -> bytes:
    if "content_b64" in fields:
        return base64.b64decode(str(fields["content_b64"]))
    rule = fields["content_rule"]
    assert isinstance(rule, dict)
    return b"".join(
        base64.b64decode(part["b64"])
        if "b64" in part
        else base64.b64decode(part["repeat_b64"]) * part["times"]
        for part in rule["concat"]
    )
