"""Write vector files: the missing ones, or all with `--all`.

Signatures and encapsulations are randomised, so that a file is made once and kept.
"""

import sys
from pathlib import Path

from tests.vectorgen import GENERATORS
from tests.vectors.vectorfile import FOLDER, encode_vector


def main(arguments: list[str]) -> int:
    """Write the files and return 0.

    Args:
        arguments: ``--all``, or names of vectors, or nothing for those that are missing.
    """
    named = {argument for argument in arguments if argument != "--all"}
    for generator in GENERATORS.values():
        path: Path = FOLDER / generator.kind / f"{generator.name}.txt"
        if path.exists() and "--all" not in arguments and generator.name not in named:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(encode_vector(generator.build()), "ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
