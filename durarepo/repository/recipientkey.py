"""A recipient's key as a person gives it: key text, a line of a `recipients` file, or a file.

Public: a recipient's key opens nothing. Source: spec/format.md 3.2, spec/cli.md 4.
Start at `recipient_given`.
"""

import os
import re

from durarepo.core.errors import KeyMaterialError
from durarepo.format.keytext import encode_key, parse_key

WHERE_FROM = (
    "it is 'durarepo-recipient-1 HEX CHECK', as durarepo keys list prints it where the identity "
    "is, or a whole line of a file 'recipients'; give the text in quotes, or the file's name"
)
_FILE_MAX_BYTES = 1 << 16
_LABELLED = re.compile(rb"(?:data|audit) \S{1,200} (?=durarepo-recipient-1 )")


def recipient_given(text: str) -> bytes:
    """Return the public bytes of the recipient that a call names.

    Args:
        text: key text, a line of a ``recipients`` file, or the path of a file that holds one.

    Raises:
        KeyMaterialError: ``malformed``; the message never quotes the text. ``unreadable``.
    """
    if os.path.isfile(text):
        try:
            with open(text, "rb") as file:
                data = file.read(_FILE_MAX_BYTES)
        except OSError as error:
            raise KeyMaterialError(
                "unreadable", f"cannot read the file {text!r}: {error.strerror}", hint=WHERE_FROM
            ) from error
        return _parsed(data, f"what stands in the file {text!r} is")
    return _parsed(text.encode("utf-8", "surrogateescape"), "what was given is no file, and")


def _parsed(data: bytes, what: str) -> bytes:
    lines = [_LABELLED.sub(b"", line.strip()) for line in data.splitlines() if line.strip()]
    keys = [line for line in lines if not line.startswith(b"#")]
    if len(keys) > 1:
        raise KeyMaterialError(
            "malformed", f"{what} more than one line; one key is needed", hint=WHERE_FROM
        )
    try:
        return parse_key("recipient", b"".join(keys))
    except KeyMaterialError as error:
        raise KeyMaterialError(
            "malformed", f"{what} no whole key of a recipient", hint=WHERE_FROM
        ) from error


def recipient_text(public: bytes) -> str:
    """Return the key text to give to whoever is to seal to a recipient."""
    return encode_key("recipient", public)
