"""The published files of the one accepted version of ``cryptography``.

Data only; made by .ci/pin_crypto.py from the wheels named here. Source: the package index,
whose own hashes of the wheels stand in .ci/requirements.txt. Start at `NATIVE_SHA256`.
"""

VERSION = "50.0.2"

SOURCES_SHA256 = "17cd857a979a8f86ca7792692db57f9b1fd0aa0ec95ea0ecd08c2b953a4b6d95"
"""All Python files of the package, the same in every wheel."""

NATIVE_SHA256 = {
    "manylinux2014_aarch64": "540fd302a3990f69f78fde6c33bfc439e0d88b9e8f95a207effdf1e14df69387",
    "manylinux2014_x86_64": "a9d379995757480a31a7eebbfb2228af93becdedd205e3af0f60ba9648650404",
    "manylinux_2_28_aarch64": "35141e8c768a7ad346deed5df20f5703cbe4c513b4ccfa88d4e16f369a57ed8c",
    "manylinux_2_28_ppc64le": "18d99d6ca029158d4050a9b924ce9dd17d4eea3c03c99c710f62608a27ea9507",
    "manylinux_2_28_x86_64": "f28d787117880abb13cc08822d1a0704d27e0fb33155d353f10a0a67efa6c4c1",
    "manylinux_2_31_armv7l": "3547bf7902477933b7355dff3c88bddb46078624dca717921d48ffd4876d8d65",
    "manylinux_2_34_aarch64": "b52e6ae53c343ce97478ee10d93a0263576d778de65333c234577298d1e9ef07",
    "manylinux_2_34_ppc64le": "cd3035fa2e900672d4c7c1b9a6a2e25a3cc0d6aaf9ecd00789bfd908e0a3be40",
    "manylinux_2_34_x86_64": "1e5d23fa66915204b9b67202a46993844d81cda56f6ad52cead2def37617ee29",
    "musllinux_1_2_aarch64": "9a02803f1db54d8bcfa75b6180b25841c49cb3f40c20dbb501c25557f681a4a0",
    "musllinux_1_2_x86_64": "923334bd755b6c3edaccffbf169be996c59f04a07145b2d2d234b39307568dcc",
}
"""``_rust.abi3.so`` of each Linux wheel, by the wheel's platform."""
