"""Mutants that the survey found alive, each with the reason why no test has to notice it.

Data, and the page that is made from it:
``python -m tests.mutations.survivors > spec/mutation-survivors.md``.
A mutant that the program no longer holds has to go from here; a test looks.
"""

import sys
from dataclasses import dataclass
from enum import StrEnum

from tests.mutations.survey import Mutant


class Why(StrEnum):
    """The kinds of reasons."""

    EQUIVALENT = "equivalent: no input tells the two apart"
    MESSAGE = "only the wording of a message changes"
    COST = "only time or memory change, within their limits"
    DEPTH = "defence in depth: another check refuses the same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A mutant and its reason, told in a sentence."""

    mutant: Mutant
    why: Why
    told: str


SURVIVORS = (
    Survivor(
        mutant=Mutant(file="durarepo/format/usual.py", function="", before="0", after="1"),
        why=Why.EQUIVALENT,
        told="It is the value for a number of no bytes, and a head has one at least.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/sealing.py",
            function="open_header",
            before="position < end",
            after="position <= end",
        ),
        why=Why.EQUIVALENT,
        told="At the border the commitment would have to be the beginning of the very stanza that"
        " seals its key: a search among 2^256.",
    ),
)


def page() -> str:
    """Return spec/mutation-survivors.md."""
    lines = [
        "# Mutations that no test notices",
        "",
        "Made by `python -m tests.mutations.survivors` from `tests/mutations/survivors.py`;"
        " do not edit.",
        "",
        "`python -m tests.mutations.survey` changes the program at one place at a time and runs the"
        " tests of the module. How many it tried last stands in [reliability.md](reliability.md)."
        " What lived then either got a test or stands here, with the reason.",
        "",
        f"{len(SURVIVORS)} are listed.",
    ]
    for why in Why:
        chosen = [one for one in SURVIVORS if one.why is why]
        if chosen:
            lines += ["", f"## {why.value[0].upper()}{why.value[1:]}", ""]
            lines += [line for one in chosen for line in _lines(one)]
    return "\n".join(lines) + "\n"


def _lines(one: Survivor) -> list[str]:
    place = f"`{one.mutant.file}`, `{one.mutant.function or 'module'}`"
    change = f"``{one.mutant.before}`` becomes ``{one.mutant.after}``"
    return [f"* {place}: {change}. {one.told}"]


if __name__ == "__main__":
    sys.stdout.write(page())
