"""How a generator is declared, and the list of all of them.

A generator is a function without arguments, decorated with `passes` or `fails`; its name is the
vector's name, its docstring the vector's comment. It returns a `Body`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.vectors.vectorfile import Part, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a generator makes: bytes or labelled parts, the inputs, and the right result."""

    data: bytes = b""
    parts: tuple[Part, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    result: str | None = None
    encoding: str = "hex"


Make = Callable[[], Body]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """One vector, not made yet."""

    name: str
    kind: str
    spec: str
    expect: str
    comment: str
    make: Make
    differs_from: str | None = None
    field: str | None = None

    def build(self) -> Vector:
        """Return the vector, freshly sealed and signed."""
        body = self.make()
        return Vector(
            name=self.name,
            expect=self.expect,
            spec=self.spec,
            kind=self.kind,
            comment=self.comment,
            inputs=body.inputs,
            parts=body.parts or (Part(label="", data=body.data),),
            result=body.result if self.expect == "success" else None,
            differs_from=self.differs_from,
            field=self.field,
            encoding=body.encoding,
        )


GENERATORS: dict[str, Generator] = {}


def _declare(make: Make, kind: str, spec: str, expect: str, **rest: str) -> Make:
    name = make.__name__.replace("_", "-")
    comment = " ".join((inspect.getdoc(make) or "").split())
    if not comment or name in GENERATORS:
        message = f"{name}: no docstring, or declared twice"
        raise ValueError(message)
    GENERATORS[name] = Generator(
        name=name,
        kind=kind,
        spec=spec,
        expect=expect,
        comment=comment,
        make=make,
        differs_from=rest.get("differs_from"),
        field=rest.get("field"),
    )
    return make


def passes(kind: str, spec: str) -> Callable[[Make], Make]:
    """Declare a vector that every reader must accept, with the result its body names."""
    return lambda make: _declare(make, kind, spec, "success")


def fails(
    kind: str, spec: str, code: str, *, differs_from: str, field: str
) -> Callable[[Make], Make]:
    """Declare a vector that every reader must refuse with ``code`` at step ``spec``.

    Args:
        kind: kind of the vector.
        spec: step of spec/ingest.md that fails.
        code: the failure.
        differs_from: the passing vector that it is equal to but for one field.
        field: that field, in words.
    """
    return lambda make: _declare(make, kind, spec, code, differs_from=differs_from, field=field)
