"""The vector file: its header keys, its body, reading and writing.

A vector is one text file that says what a reader is given and what it has to answer. Anything that
spec/vectors.md does not allow is an error here, so that a misspelt input cannot turn a test off.
Start at `parse_vector`; `encode_vector` is its inverse. Imports nothing of durarepo.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "vectors"
SHARED = "shared"

DESCRIPTION = ("expect", "spec", "kind", "comment", "differs-from", "field", "result", "encoding")
REGISTRY = ("now", "locator", "owner-digest", "version", "highest")
CHAINED = ("anchor", "high-water", "clock", "archival")
PACKED = ("pin", "naming")
# Inputs of each kind: those that must stand, then those that may.
INPUTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cbor": ((), ()),
    "key": (("key-kind",), ()),
    "card": ((), ("passphrase",)),
    "keysfile": (("identity",), ()),
    "registry": (REGISTRY, ("purpose",)),
    "manifest": (
        (*REGISTRY, "registry", "stream", "epoch", "sequence", "identity"),
        ("naming", *CHAINED),
    ),
    "chain": ((*REGISTRY, "stream", "sequence", "identity"), CHAINED),
    "index": (PACKED, ()),
    "chunk": ((*PACKED, "identity", "stream", "epoch", "compartment", "chunk"), ()),
    "tree": (("naming", "root", "root-path"), ()),
    "path": (("naming", "root", "root-path"), ()),
    "content": (("naming", "root", "root-path"), ()),
    "repository": (
        (*REGISTRY, "stream", "sequence", "identity"),
        (*CHAINED, "now-frames", "now-end"),
    ),
}
_HEADER = re.compile(r"([a-z][a-z-]*): (\S(?:.*\S)?)\Z")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_CODE = re.compile(r"success\Z|(?:integrity|trust|fresh|keys)\.[a-z]+(?:-[a-z]+)*\Z")
_STEP = re.compile(r"[1-9]\.[1-9][0-9]?\Z")
_LABEL = re.compile(r"\[([^\[\]]+)\](?: @([a-z0-9-]+))?\Z")
_REPEAT = re.compile(r"repeat: ([1-9][0-9]{0,8}) ((?:[0-9a-f]{2})+)\Z")
_LINE_BYTES = {"hex": 48, "base64": 72}
_RUN = re.compile(rb"(.)\1{95,}", re.DOTALL)


class VectorFileError(Exception):
    """The file is not a vector of this form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a body; ``shared`` names the file it stands in, if not in the vector."""

    label: str
    data: bytes
    shared: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """One vector: what is given, and the one right answer."""

    name: str
    expect: str
    spec: str
    kind: str
    comment: str
    inputs: Mapping[str, str]
    parts: tuple[Part, ...]
    result: str | None = None
    differs_from: str | None = None
    field: str | None = None
    encoding: str = "hex"

    @property
    def body(self) -> bytes:
        """The bytes of a body that is one piece without a label."""
        if len(self.parts) != 1 or self.parts[0].label:
            message = f"{self.name}: the body has labelled parts"
            raise VectorFileError(message)
        return self.parts[0].data

    @property
    def labelled(self) -> dict[str, bytes]:
        """The parts of the body by their label."""
        return {part.label: part.data for part in self.parts}


def _refuse(name: str, problem: str) -> VectorFileError:
    return VectorFileError(f"{name}: {problem}")


def _decode_line(line: str, encoding: str) -> bytes:
    repeat = _REPEAT.match(line)
    if repeat is not None:
        return int(repeat.group(1)) * bytes.fromhex(repeat.group(2))
    if encoding == "hex" and re.fullmatch(r"(?:[0-9a-f]{2})+", line):
        return bytes.fromhex(line)
    if encoding == "base64":
        return base64.b64decode(line, validate=True)
    message = f"not a line of {encoding}"
    raise ValueError(message)


def decode_body(lines: list[str], encoding: str, shared: Callable[[str], bytes]) -> list[Part]:
    """Return the parts of a body.

    Args:
        lines: what follows the blank line.
        encoding: ``hex`` or ``base64``.
        shared: gives the bytes of a shared file by its name.

    Raises:
        ValueError: a line is in another form, or a label stands twice.
    """
    parts: list[Part] = []
    for line in lines:
        label = _LABEL.match(line)
        if label is not None:
            name, reference = label.groups()
            if any(part.label in {name, ""} for part in parts):
                message = f"label {name} twice, or behind bytes without one"
                raise ValueError(message)
            data = b"" if reference is None else shared(reference)
            parts.append(Part(label=name, data=data, shared=reference))
            continue
        if not parts:
            parts.append(Part(label="", data=b""))
        last = parts[-1]
        if last.shared is not None:
            message = f"bytes behind the shared part {last.label}"
            raise ValueError(message)
        parts[-1] = Part(label=last.label, data=last.data + _decode_line(line, encoding))
    return parts or [Part(label="", data=b"")]


def load_shared(name: str, folder: Path = FOLDER) -> bytes:
    """Return the bytes of the shared file ``name``: base64 lines and nothing else."""
    text = (folder / SHARED / f"{name}.txt").read_text("ascii")
    return b"".join(base64.b64decode(line, validate=True) for line in text.splitlines())


def _split(name: str, text: str) -> tuple[dict[str, str], list[str]]:
    if not text.endswith("\n"):
        raise _refuse(name, "the last line does not end")
    head, blank, body = text.partition("\n\n")
    if not blank:
        raise _refuse(name, "no blank line behind the header")
    header: dict[str, str] = {}
    for line in head.split("\n"):
        match = _HEADER.match(line)
        if match is None:
            raise _refuse(name, f"not a header line: {line!r}")
        key, value = match.groups()
        if key in header:
            raise _refuse(name, f"header key {key} twice")
        header[key] = value
    return header, body.splitlines()


def _check_header(name: str, header: Mapping[str, str]) -> None:
    missing = {"expect", "spec", "kind", "comment", "encoding"} - set(header)
    if missing:
        raise _refuse(name, f"missing header keys {sorted(missing)}")
    if header["kind"] not in INPUTS or header["encoding"] not in _LINE_BYTES:
        raise _refuse(name, "unknown kind or encoding")
    if not _CODE.match(header["expect"]) or not _STEP.match(header["spec"]):
        raise _refuse(name, "expect or spec is malformed")
    wanted = {"result"} if header["expect"] == "success" else {"differs-from", "field"}
    if set(header) & {"result", "differs-from", "field"} != wanted:
        raise _refuse(name, f"needs {sorted(wanted)} and none of the other kind")
    _check_inputs(name, header)


def _check_inputs(name: str, header: Mapping[str, str]) -> None:
    must, may = INPUTS[header["kind"]]
    unknown = set(header) - set(DESCRIPTION) - set(must) - set(may)
    if unknown:
        raise _refuse(name, f"unknown header keys {sorted(unknown)}")
    if not set(must) <= set(header):
        raise _refuse(name, f"missing inputs {sorted(set(must) - set(header))}")


def parse_vector(name: str, text: str, shared: Callable[[str], bytes] = load_shared) -> Vector:
    """Return the vector in ``text``.

    Args:
        name: file name without its ending.
        text: the whole file.
        shared: gives the bytes of a shared file by its name.

    Raises:
        VectorFileError: the text breaks a rule of spec/vectors.md.
    """
    if not _NAME.match(name):
        raise _refuse(name, "not a name of a vector")
    header, lines = _split(name, text)
    _check_header(name, header)
    try:
        parts = decode_body(lines, header["encoding"], shared)
    except (ValueError, binascii.Error, OSError) as error:
        raise _refuse(name, f"body: {error}") from error
    return Vector(
        name=name,
        expect=header["expect"],
        spec=header["spec"],
        kind=header["kind"],
        comment=header["comment"],
        inputs={key: header[key] for key in header if key not in DESCRIPTION},
        parts=tuple(parts),
        result=header.get("result"),
        differs_from=header.get("differs-from"),
        field=header.get("field"),
        encoding=header["encoding"],
    )


def _lines_of(data: bytes, encoding: str) -> list[str]:
    width = _LINE_BYTES[encoding]
    pieces = [data[at : at + width] for at in range(0, len(data), width)]
    if encoding == "hex":
        return [piece.hex() for piece in pieces]
    return [base64.b64encode(piece).decode("ascii") for piece in pieces]


def encode_bytes(data: bytes, encoding: str) -> list[str]:
    """Return the body lines of ``data``; a long run of one byte becomes a ``repeat:`` line."""
    lines: list[str] = []
    at = 0
    for run in _RUN.finditer(data):
        lines += _lines_of(data[at : run.start()], encoding)
        lines.append(f"repeat: {len(run.group())} {run.group(1).hex()}")
        at = run.end()
    return lines + _lines_of(data[at:], encoding)


def encode_vector(vector: Vector) -> str:
    """Return the file of ``vector``: description, inputs, result, blank line, body."""
    header = [("expect", vector.expect), ("spec", vector.spec), ("kind", vector.kind)]
    header.append(("comment", vector.comment))
    if vector.differs_from is not None and vector.field is not None:
        header += [("differs-from", vector.differs_from), ("field", vector.field)]
    header += list(vector.inputs.items())
    if vector.result is not None:
        header.append(("result", vector.result))
    header.append(("encoding", vector.encoding))
    lines = [f"{key}: {value}" for key, value in header]
    lines.append("")
    for part in vector.parts:
        if part.shared is not None:
            lines.append(f"[{part.label}] @{part.shared}")
            continue
        if part.label:
            lines.append(f"[{part.label}]")
        lines += encode_bytes(part.data, vector.encoding)
    return "\n".join(lines) + "\n"


def iter_vector_paths(folder: Path = FOLDER) -> list[Path]:
    """Return the files of all vectors, in order of their paths."""
    return sorted(path for path in folder.glob("*/*.txt") if path.parent.name != SHARED)


def load_vectors(folder: Path = FOLDER) -> dict[str, Vector]:
    """Return all vectors by name.

    Raises:
        VectorFileError: a file breaks the form, lies in another kind's folder, or shares its name.
    """
    vectors: dict[str, Vector] = {}
    for path in iter_vector_paths(folder):
        vector = parse_vector(path.stem, path.read_text("ascii"))
        if vector.kind != path.parent.name:
            raise _refuse(vector.name, f"of kind {vector.kind} in folder {path.parent.name}")
        if vector.name in vectors:
            raise _refuse(vector.name, "two vectors of this name")
        vectors[vector.name] = vector
    return vectors
