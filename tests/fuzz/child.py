"""One target under the coverage-guided fuzzer, in a process of its own that ends with it.

The only module that imports atheris, and only when it is run: it is not among the packages that
the tests need. Its arguments are a target, an empty folder for files, and those of
libFuzzer, the folder of inputs last.
"""

import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Fuzz the target that is named; the fuzzer ends the process."""
    name, folder, *rest = arguments
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["durarepo", "tomllib"]):
        from tests.hostile.mutation import draws, mutated_bytes, mutated_value
        from tests.hostile.target import check_answer
        from tests.hostile.targets import targets
    target = next(one for one in targets(Path(folder)) if one.name == name)
    for seed in target.seeds:  # what is sealed is sealed anew in each process
        (Path(rest[-1]) / sha256(seed).hexdigest()[:16]).write_bytes(seed)

    def one_input(data: bytes) -> None:
        check_answer(target, data, "fuzzed")

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        rng, way = draws(str(seed)), seed % 4
        if way == 0 and target.is_encoded:
            try:
                return mutated_value(rng, [data])[:most]
            except Exception:  # noqa: BLE001  # no encoding any more: only its bytes can be mutated
                way = 1
        if way == 1:
            return mutated_bytes(rng, [data, *target.seeds])[:most]
        return bytes(atheris.Mutate(data, most))

    atheris.Setup([sys.argv[0], *rest], one_input, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
