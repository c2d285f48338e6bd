"""Credentials of a remote: the one line of their file, and the header field made of it.

Where the file lies and who may read it is checked by who reads it.
Source: spec/mirror.md 2. Start at `parse_credentials`.
"""

import base64
import re

from durarepo.core.errors import KeyMaterialError
from durarepo.core.secret import Secret

_BEARER = re.compile(rb"bearer ([A-Za-z0-9._~+/=-]{1,4096})\n?\Z")
_BASIC = re.compile(rb"basic ([\x21-\x39\x3b-\x7e]{1,256}:[\x20-\x7e]{0,1024})\n?\Z")


def parse_credentials(data: bytes) -> Secret:
    """Return the value of the ``Authorization`` field that a credentials file stands for.

    Args:
        data: ``bearer TOKEN`` or ``basic USER:PASSWORD``, printable ASCII, one line.

    Raises:
        KeyMaterialError: ``malformed``; the message holds nothing of the file.
    """
    if found := _BEARER.match(data):
        return Secret(b"Bearer " + found[1])
    if found := _BASIC.match(data):
        return Secret(b"Basic " + base64.b64encode(found[1]))
    raise KeyMaterialError(
        "malformed",
        "the credentials file of a remote is not one line of credentials",
        hint="write 'bearer TOKEN' or 'basic USER:PASSWORD' into it, and nothing else",
    )
