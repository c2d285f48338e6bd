"""Mutants that the survey found alive, each with the reason why no test has to notice it.

Data, and the page that is made from it:
``python -m tests.mutations.survivors > spec/mutation-survivors.md``.
A mutant that the program no longer holds has to go from here; a test looks.
"""
# ruff: noqa: E501 - a reason is one sentence, and a mutant one line

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
        mutant=Mutant(
            file="durarepo/format/canonical.py",
            function="",
            before="(1 << 64) - 1",
            after="(1 << 64) + 1",
        ),
        why=Why.MESSAGE,
        told="The head of an integer refuses the two numbers between with an error of the same class.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/format/pack.py",
            function="parse_index",
            before="len(tables) < _FIXED.size",
            after="len(tables) <= _FIXED.size",
        ),
        why=Why.MESSAGE,
        told="Tables that end there hold no frame, and are refused under the same code two lines on.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/format/canonical.py",
            function="encode_head",
            before="0",
            after="1",
            number=1,
        ),
        why=Why.EQUIVALENT,
        told="A number that small has its head from a table and does not come here.",
    ),
    Survivor(
        mutant=Mutant(file="durarepo/format/canonical.py", function="_map", before="1", after="2"),
        why=Why.EQUIVALENT,
        told="The value stands before any key, and no key is below 0.",
    ),
    Survivor(
        mutant=Mutant(file="durarepo/format/tree.py", function="", before="65535", after="65536"),
        why=Why.COST,
        told="The time of just that second is encoded by the longer way, to the same bytes.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/format/tree.py",
            function="_append_optional",
            before="entry.type > FileType.DIRECTORY",
            after="entry.type >= FileType.DIRECTORY",
        ),
        why=Why.COST,
        told="A directory is asked for fields that it never has.",
    ),
    Survivor(
        mutant=Mutant(file="durarepo/format/usual.py", function="", before="0", after="1"),
        why=Why.EQUIVALENT,
        told="It is the value for a number of no bytes, and a head has one at least.",
    ),
    Survivor(
        mutant=Mutant(file="durarepo/format/usual.py", function="", before="1", after="2"),
        why=Why.COST,
        told="The entry of an owner whose name has one byte is read by the longer way, to the same value.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/ingest.py",
            function="_check_link",
            before="milestone > anchor.sequence",
            after="milestone >= anchor.sequence",
        ),
        why=Why.EQUIVALENT,
        told="The anchor's digest is always among those that are known, so the other half of the condition holds.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/ingest.py",
            function="_check_link",
            before="epoch.number > 1",
            after="epoch.number >= 1",
        ),
        why=Why.EQUIVALENT,
        told="Before the first epoch there are zeros, in the registry by its own parser, and at number 1 by the comparison above.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/sealing.py",
            function="open_header",
            before="position < end",
            after="position <= end",
        ),
        why=Why.EQUIVALENT,
        told="At the border the commitment would have to be the beginning of the very stanza that seals its key: a search among 2^256.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/sealing.py", function="open_header", before="break", after="pass"
        ),
        why=Why.COST,
        told="Stanzas that are cut short open for nobody, so the same refusal comes a few tries later.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/repository/restorer.py",
            function="_Restore._add",
            before="first is not None and entry.link_group is not None",
            after="first is not None or entry.link_group is not None",
        ),
        why=Why.EQUIVALENT,
        told="There is none for a file with a group only where the file system cannot link, and then none of its other names can be linked either.",
    ),
    Survivor(
        mutant=Mutant(
            file="durarepo/repository/restorer.py",
            function="_Restore._whole",
            before="not entry.xattrs or all((isinstance(value, bytes) for _, value in entry.xattrs))",
            after="not entry.xattrs and all((isinstance(value, bytes) for _, value in entry.xattrs))",
        ),
        why=Why.COST,
        told="Attributes that are all in place are put together again, to the same ones.",
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
