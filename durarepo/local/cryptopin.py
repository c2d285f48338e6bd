"""Is the installed ``cryptography`` package the published one, native and complete?

Asks before the package is imported where it would be imported from, and afterwards whether that
is what came. Calculates nothing with the package and makes no key. It tells a wrong, damaged,
shadowed or half-upgraded installation; who may write into the installation itself can also
change durarepo, and nothing here stops that.
The version is read from the record beside the package, since ``importlib.metadata`` costs more
than all of this. Most of the time goes into the SHA-256 of one file of 14 MB.
Source: spec/decisions/0001-dependencies.md; AICEP 10.5.5. Start at `check_crypto_package`.
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ExtensionFileLoader, PathFinder
from types import BuiltinFunctionType, ModuleType

from durarepo.core.errors import KeyMaterialError
from durarepo.local.cryptopin_wheels import NATIVE_SHA256, SOURCES_SHA256, VERSION

NATIVE_FILE = "hazmat/bindings/_rust.abi3.so"


def check_crypto_package() -> None:
    """Return if the crypto package is the pinned one; change nothing.

    Raises:
        KeyMaterialError: ``keys.crypto-pin``, for another version, a file that is not the
            published one, a package that is not native, or missing algorithms.
    """
    folder = _package_folder()
    check_files(folder)
    check_loaded(folder)


def check_files(folder: str) -> None:
    """Compare the version and the files of the package in ``folder`` with the pins.

    Args:
        folder: the ``cryptography`` package, wherever it lies; nothing of it is executed.

    Raises:
        KeyMaterialError: they differ.
    """
    _check_version(folder)
    native = os.path.join(folder, NATIVE_FILE)
    try:
        with open(native, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        sources = sources_digest(_python_sources(folder))
    except OSError as error:
        raise _refusal(f"cannot be read: {error.strerror}", folder) from error
    if digest not in NATIVE_SHA256.values():
        raise _refusal("has a native file that is not a published one", folder)
    if sources != SOURCES_SHA256:
        raise _refusal("has Python files that are not the published ones", folder)


def check_loaded(folder: str) -> None:
    """Import the native part and check that it came from ``folder`` and can what is needed.

    Raises:
        KeyMaterialError: another module came, or one that is not native, or without the
            post-quantum algorithms.
    """
    try:
        import cryptography  # noqa: PLC0415 - not before its files are checked
        from cryptography.hazmat.bindings import _rust  # noqa: PLC0415 - as above
    except ImportError as error:
        raise _refusal("cannot be imported", folder) from error
    places = [os.path.abspath(place) for place in cryptography.__path__]
    if cryptography.__version__ != VERSION or places != [folder]:
        raise _refusal("is not what Python has loaded", folder)
    if not _is_native(_rust, os.path.join(folder, NATIVE_FILE)):
        raise _refusal("is loaded without its native part", folder)
    _check_algorithms(_rust.openssl, folder)


def sources_digest(sources: Iterable[tuple[str, bytes]]) -> str:
    """Return one digest of all Python files, in hexadecimal.

    Args:
        sources: path relative to the package, with slashes, and content; in any order.
    """
    whole = hashlib.sha256()
    for path, content in sorted(sources):
        whole.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
    return whole.hexdigest()


def _package_folder() -> str:
    """Return the folder that ``import cryptography`` uses, without importing it."""
    loaded = sys.modules.get("cryptography")
    spec = loaded.__spec__ if loaded else PathFinder.find_spec("cryptography")
    if spec is None or not spec.submodule_search_locations:
        raise _refusal("is missing or is no package", spec.origin if spec else None)
    return os.path.abspath(next(iter(spec.submodule_search_locations)))


def _check_version(folder: str) -> None:
    """Compare the record of the installation, which lies beside the package."""
    try:
        beside = os.listdir(os.path.dirname(folder))
    except OSError as error:
        raise _refusal(f"cannot be read: {error.strerror}", folder) from error
    records = [
        name
        for name in beside
        if name.startswith("cryptography-") and name.endswith((".dist-info", ".egg-info"))
    ]
    if records != [f"cryptography-{VERSION}.dist-info"]:
        raise _refusal(f"is recorded as {sorted(records)!r}", folder)


def _python_sources(folder: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each Python file below ``folder``."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(folder, below)) as entries:
            for entry in entries:
                if entry.is_dir():
                    waiting.append(f"{below}{entry.name}/")
                elif entry.name.endswith(".py"):
                    with open(entry.path, "rb") as file:
                        yield below + entry.name, file.read()


def _is_native(module: ModuleType, path: str) -> bool:
    """Return whether ``module`` is compiled code that Python loaded from ``path``."""
    spec = module.__spec__
    return (
        spec is not None
        and isinstance(spec.loader, ExtensionFileLoader)
        and os.path.abspath(spec.loader.path) == path
        and isinstance(module.openssl.openssl_version_text, BuiltinFunctionType)
    )


def _check_algorithms(openssl: ModuleType, folder: str) -> None:
    """Ask for the algorithms of the format by name; no key is made."""
    needed = (
        ("aead", "AESGCM"),
        ("hpke", "Suite"),
        ("mlkem", "from_mlkem768_seed_bytes"),
        ("mldsa", "from_mldsa65_seed_bytes"),
    )
    missing = [name for module, name in needed if not hasattr(getattr(openssl, module, 0), name)]
    if missing or not openssl.CRYPTOGRAPHY_OPENSSL_350_OR_GREATER:
        raise _refusal("lacks ML-KEM, ML-DSA or HPKE", folder)
    if openssl.is_fips_enabled():
        raise _refusal("runs in FIPS mode, without X25519", folder)


def _refusal(what: str, folder: str | None) -> KeyMaterialError:
    where = f" in {os.path.dirname(folder)!r}" if folder else ""
    return KeyMaterialError(
        "crypto-pin",
        f"crypto package 'cryptography'{where} {what}; pinned is {VERSION}",
        hint=f"install cryptography {VERSION} from its published Linux wheel, or remove the "
        "environment and let durarepo make it anew",
    )
