"""Checks a message against its JSON Schema: the few words of the language that are used here.

A word that is not known is an error, so that no schema says more than is checked.
Start at `check`.
"""

import json
import re

from tests.cli.harness import TOP, Json

FOLDER = TOP / "spec" / "schema"
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_WORDS = {"$schema", "title", "type", "properties", "required", "items", "enum", "const"}
_WORDS |= {"pattern", "minimum", "maximum"}


def check(name: str, message: object) -> None:
    """Fail unless ``message`` is as spec/schema/NAME.json says, and says of every field."""
    schema = json.loads((FOLDER / f"{name}.json").read_text())
    _check(schema, message, name)


def _check(schema: Json, value: object, where: str) -> None:
    assert set(schema) <= _WORDS, f"{where}: unknown words {set(schema) - _WORDS}"
    if "const" in schema:
        assert value == schema["const"], where
        return
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    allowed = tuple(one for kind in kinds for one in _TYPES[str(kind)])
    assert isinstance(value, allowed), f"{where}: {value!r} is not of {kinds}"
    assert not isinstance(value, bool) or "boolean" in kinds, where
    if "enum" in schema:
        assert isinstance(schema["enum"], list)
        assert value in schema["enum"], f"{where}: {value!r}"
    if isinstance(value, str) and "pattern" in schema:
        assert re.search(str(schema["pattern"]), value), f"{where}: {value!r}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        assert value >= float(str(schema.get("minimum", value))), where
        assert value <= float(str(schema.get("maximum", value))), where
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for number, one in enumerate(value):
            _check(schema["items"], one, f"{where}[{number}]")  # type: ignore[arg-type]  # a dict
    if isinstance(value, dict):
        _check_object(schema, value, where)


def _check_object(schema: Json, value: Json, where: str) -> None:
    known = schema.get("properties")
    if not isinstance(known, dict):
        return  # names that are free, such as counts
    required = schema["required"]
    assert isinstance(required, list)
    assert set(required) <= set(value), f"{where}: lacks {set(required) - set(value)}"
    assert set(value) <= set(known), f"{where}: undocumented {set(value) - set(known)}"
    for name, inner in value.items():
        _check(known[name], inner, f"{where}.{name}")
