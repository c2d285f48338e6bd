"""The crypto package is the published one, native and complete, or nothing runs (A5d)."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import cryptography
import pytest
from cryptography.hazmat.bindings import _rust

from durarepo.core.errors import KeyMaterialError
from durarepo.local import cryptopin
from durarepo.local.cryptopin import NATIVE_FILE, check_crypto_package, check_files, check_loaded
from durarepo.local.cryptopin_wheels import NATIVE_SHA256, VERSION

TOP = Path(__file__).resolve().parents[3]
INSTALLED = Path(cryptography.__path__[0])
RECORD = f"cryptography-{VERSION}.dist-info"

SYSTEMS = ("manylinux2014", "manylinux_2_28", "manylinux_2_34", "musllinux_1_2")
ALGORITHMS = ("aead", "hpke", "mlkem", "mldsa")

CHILD = """
import sys
sys.path[:0] = sys.argv[1:]
from durarepo.core.errors import KeyMaterialError
from durarepo.local.cryptopin import check_crypto_package
before = "cryptography" in sys.modules
try:
    check_crypto_package()
except KeyMaterialError as error:
    print(error.code, "cryptography" in sys.modules)
else:
    print("accepted", before, "importlib.metadata" in sys.modules)
"""


def run_child(*path: Path, flags: tuple[str, ...] = ()) -> str:
    """Return what a fresh interpreter says with ``path`` in front of its search path."""
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [sys.executable, *flags, "-c", CHILD, *map(str, path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the installed package with its record beside it, to be spoilt."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(INSTALLED, tmp_path / "cryptography", ignore=skip)
    (tmp_path / RECORD).mkdir()
    return tmp_path


def test_the_installed_package_is_accepted_before_and_after_its_import() -> None:
    """A pin that refuses the published wheel would stop every backup."""
    fresh = run_child()

    assert fresh == "accepted False False"
    check_crypto_package()  # loaded here long ago


def test_an_exact_copy_elsewhere_is_accepted(copied: Path) -> None:
    """Without this control the refusals below could come from the copying alone."""
    assert run_child(copied) == "accepted False False"


def test_a_pure_python_shadow_is_refused_and_never_executed(tmp_path: Path) -> None:
    """A folder earlier on the path must not bring its own cipher, however well it lies."""
    bindings = tmp_path / "cryptography" / "hazmat" / "bindings"
    bindings.mkdir(parents=True)
    (tmp_path / RECORD).mkdir()
    (tmp_path / "cryptography" / "__init__.py").write_text(f"__version__ = {VERSION!r}\n")
    (bindings.parent / "__init__.py").write_text("")
    (bindings / "__init__.py").write_text("")
    (bindings / "_rust.py").write_text("openssl = None\n")

    assert run_child(tmp_path) == "keys.crypto-pin False"


def test_a_shadow_that_carries_the_genuine_native_file_is_refused(copied: Path) -> None:
    """The native file alone proves nothing when other Python code stands in front of it."""
    aead = copied / "cryptography" / "hazmat" / "primitives" / "ciphers" / "aead.py"
    aead.write_bytes(aead.read_bytes() + b"# one more line\n")

    assert run_child(copied) == "keys.crypto-pin False"


def test_a_python_file_too_many_is_refused(copied: Path) -> None:
    """A planted package of the native module's name would be imported in its place."""
    planted = copied / "cryptography" / "hazmat" / "bindings" / "_rust" / "__init__.py"
    planted.write_text("from types import SimpleNamespace as openssl\n")

    assert run_child(copied) == "keys.crypto-pin False"


def test_one_altered_byte_in_the_native_file_is_refused(copied: Path) -> None:
    """A damaged disk or a patched library must not seal anything."""
    native = copied / "cryptography" / NATIVE_FILE
    with native.open("r+b") as file:
        file.seek(native.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))

    assert run_child(copied) == "keys.crypto-pin False"


def test_a_missing_native_file_is_refused(copied: Path) -> None:
    """A package without its native part would fail late, in the middle of a run."""
    (copied / "cryptography" / NATIVE_FILE).unlink()

    assert run_child(copied) == "keys.crypto-pin False"


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([], id="no record at all"),
        pytest.param(["cryptography-49.0.0.dist-info"], id="another version"),
        pytest.param([RECORD, "cryptography-49.0.0.dist-info"], id="half upgraded"),
        pytest.param(["cryptography-38.0.4.egg-info"], id="the system's package"),
    ],
)
def test_another_recorded_version_is_refused(copied: Path, records: list[str]) -> None:
    """Only one version was reviewed; what is recorded as another one was not."""
    (copied / RECORD).rmdir()
    for record in records:
        (copied / record).mkdir()

    assert run_child(copied) == "keys.crypto-pin False"


@pytest.mark.parametrize(
    ("attribute", "value"), [("__version__", "49.0.0"), ("__path__", ["/usr/lib/cryptography"])]
)
def test_a_loaded_package_that_is_not_the_compared_one_is_refused(
    attribute: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compared on disk and the code that runs have to be one and the same."""
    monkeypatch.setattr(cryptography, attribute, value)

    check_refused(lambda: check_loaded(str(INSTALLED)))


def test_a_missing_package_is_refused_as_key_material() -> None:
    """An interpreter without the package must say so in our words, with a hint."""
    assert run_child(flags=("-S",)) == "keys.crypto-pin False"


def test_a_package_loaded_from_elsewhere_is_refused(copied: Path) -> None:
    """The folder that was compared must be the folder that Python runs."""
    check_files(str(copied / "cryptography"))

    check_refused(lambda: check_loaded(str(copied / "cryptography")))


def test_a_module_already_loaded_under_the_name_is_what_gets_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A module put into ``sys.modules`` would be used, whatever lies on the path."""
    monkeypatch.setitem(sys.modules, "cryptography", ModuleType("cryptography"))

    check_refused(check_crypto_package)


def test_a_native_module_that_is_not_compiled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python code under the native module's name and place is still Python code."""
    fake = ModuleType("_rust")
    fake.__spec__ = _rust.__spec__
    openssl = fake_openssl()
    vars(openssl)["openssl_version_text"] = lambda: "OpenSSL 3.5"
    vars(fake)["openssl"] = openssl
    monkeypatch.setattr("cryptography.hazmat.bindings._rust", fake)

    check_refused(lambda: check_loaded(str(INSTALLED)))


def test_a_native_module_from_another_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second extension file of the same name would win over the one that was compared."""
    monkeypatch.setattr(cryptopin, "NATIVE_FILE", "hazmat/bindings/_rust.so")

    check_refused(lambda: check_loaded(str(INSTALLED)))


@pytest.mark.parametrize("missing", ALGORITHMS)
def test_a_package_without_an_algorithm_of_the_format_is_refused(missing: str) -> None:
    """A build without post-quantum parts would fail at the first key, not at the start."""
    openssl = fake_openssl(names=set(ALGORITHMS) - {missing})

    check_refused(lambda: cryptopin._check_algorithms(openssl, "x"))


@pytest.mark.parametrize(("new_enough", "fips"), [(False, False), (True, True)])
def test_a_library_that_cannot_do_the_suite_is_refused(*, new_enough: bool, fips: bool) -> None:
    """An OpenSSL before 3.5, or one in FIPS mode, lacks half of the hybrid suite."""
    cryptopin._check_algorithms(fake_openssl(), "x")
    openssl = fake_openssl(new_enough=new_enough, fips=fips)

    check_refused(lambda: cryptopin._check_algorithms(openssl, "x"))


def test_users_and_gates_install_exactly_the_pinned_version() -> None:
    """A range or a stale lock would install a package that is then refused."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    wanted = [name for name in project["dependencies"] if name.startswith("cryptography")]
    lock = (TOP / ".ci" / "requirements.txt").read_text()

    assert wanted == [f"cryptography=={VERSION}"]
    assert re.findall(r"^cryptography==(\S+)", lock, re.MULTILINE) == [VERSION]


def test_every_published_linux_platform_has_its_own_pin() -> None:
    """A copied line in the table would refuse a whole kind of machine."""
    usual = {f"{system}_{machine}" for system in SYSTEMS for machine in ("x86_64", "aarch64")}

    assert usual <= NATIVE_SHA256.keys()
    assert len(set(NATIVE_SHA256.values())) == len(NATIVE_SHA256)
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in NATIVE_SHA256.values())


def fake_openssl(
    *, names: Iterable[str] = ALGORITHMS, new_enough: bool = True, fips: bool = False
) -> ModuleType:
    """Return a module that looks like the native one to the question for algorithms."""
    module = ModuleType("openssl")
    vars(module).update({name: getattr(_rust.openssl, name) for name in names})
    vars(module).update(
        CRYPTOGRAPHY_OPENSSL_350_OR_GREATER=new_enough, is_fips_enabled=lambda: fips
    )
    return module


def check_refused(step: Callable[[], None]) -> None:
    """Assert that ``step`` refuses the package, names the pin and says what to do."""
    with pytest.raises(KeyMaterialError) as refusal:
        step()
    assert refusal.value.code == "keys.crypto-pin"
    assert VERSION in refusal.value.message
    assert refusal.value.hint
