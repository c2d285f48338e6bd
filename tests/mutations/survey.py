"""A survey by many small mutations: which changes of the program does no test notice?

Unlike the catalogue, whose entries each take away a named protection, these are made by rules:
comparisons and boolean operators turned, numbers moved by one, raises, calls and loop controls
dropped. Of all that are possible a seed draws some; each is run against the tests of its module,
which stop at the first that fails. What no test notices is listed by `survivors.py`, with the
reason why that is right, or gets a test.

mutmut and cosmic-ray do the same; neither was tried here. A start of pytest takes most of a second
before the first test, so `server.py` forks once the tests are collected. What cannot be tried
so, and all that lives there, is run again in a child that imports the program afresh, so that
nothing counts as alive that a plain run of the tests would notice.
Long command: ``python -m tests.mutations.survey --seconds 600``.
Start at `survey`; `mutants_of` is what can be changed.
"""

import argparse
import ast
import compileall
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from tests.mutations.mutation import TOP, copy_tree
from tests.mutations.server import Job, serve
from tests.reliability.results import FOLDER, Result, commit_now, today, write_result

_UNIT = "tests/unit"
_VECTORS = "tests/vectors/test_vectors.py::test_durarepo_answers_as_the_vector_says"
_LAWS = (
    "tests/hostile/test_parsers.py::test_what_is_good_is_taken",
    "tests/fuzz/test_corpus.py::test_what_was_kept_breaks_nothing",
)
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "durarepo/format/canonical.py": (f"{_UNIT}/format/test_canonical.py", *_LAWS, _VECTORS),
    "durarepo/format/document.py": (f"{_UNIT}/format/test_document.py", *_LAWS, _VECTORS),
    "durarepo/format/fields.py": (
        f"{_UNIT}/format/test_fields.py", f"{_UNIT}/format/test_registry.py",
        f"{_UNIT}/format/test_manifest.py", *_LAWS,
    ),
    "durarepo/format/keytext.py": (f"{_UNIT}/format/test_keytext.py", *_LAWS, _VECTORS),
    "durarepo/format/layout.py": (f"{_UNIT}/format/test_layout.py", *_LAWS, _VECTORS),
    "durarepo/format/manifest.py": (
        f"{_UNIT}/format/test_manifest.py", f"{_UNIT}/format/test_ledger_and_roots.py",
        *_LAWS, _VECTORS,
    ),
    "durarepo/format/pack.py": (f"{_UNIT}/format/test_pack.py", *_LAWS, _VECTORS),
    "durarepo/format/registry.py": (f"{_UNIT}/format/test_registry.py", *_LAWS, _VECTORS),
    "durarepo/format/tree.py": (f"{_UNIT}/format/test_tree.py", *_LAWS, _VECTORS),
    "durarepo/format/usual.py": (f"{_UNIT}/format/test_tree.py", *_LAWS),
    "durarepo/ingest.py": (f"{_UNIT}/test_ingest.py", "tests/adversary", *_LAWS, _VECTORS),
    "durarepo/sealing.py": (f"{_UNIT}/test_sealing.py", *_LAWS, _VECTORS),
    "durarepo/repository/restorer.py": (
        f"{_UNIT}/operations/test_checkout.py", f"{_UNIT}/repository/test_scratch.py",
    ),
    "durarepo/repository/pieces.py": (
        f"{_UNIT}/operations/test_checkout.py", "tests/adversary",
    ),
    "durarepo/repository/reader.py": (
        f"{_UNIT}/repository/test_reader.py", "tests/adversary",
    ),
    "durarepo/repository/openpack.py": (
        f"{_UNIT}/repository/test_reader.py", "tests/adversary",
    ),
}  # fmt: skip
"""Each module with the tests that are about it, the quickest first."""
PRELOADED = ("pytest", "hypothesis", "cryptography", "zstandard")
TIMEOUT_SECONDS = 120
_LEAST_SECONDS = 60.0
"""A module has so long, however few of its mutants were drawn."""
_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change: where, what stood there, what stands there now. ``number`` tells equals apart."""

    file: str
    function: str
    before: str
    after: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.file} {self.function}: {self.before} -> {self.after} ({self.number})"


# --- what can be changed ---------------------------------------------------------------------


def mutants_of(source: str, file: str) -> Iterator[tuple[Mutant, Callable[[], str]]]:
    """Yield every mutant of a module, each with what makes the module's new text."""
    tree = ast.parse(source)
    seen: dict[Mutant, int] = {}
    for path, function in _places(tree):
        node = _at(tree, path)
        for changed in _changes(node):
            plain = Mutant(file=file, function=function, before=_short(node),
                           after=_short(changed))  # fmt: skip
            number = seen[plain] = seen.get(plain, -1) + 1
            named = Mutant(file=file, function=function, before=plain.before,
                           after=plain.after, number=number)  # fmt: skip
            yield named, partial(_replaced, tree, path, changed)


Step = tuple[str, int | None]
Drawn = tuple[Mutant, Callable[[], str]]


def _places(tree: ast.Module) -> list[tuple[tuple[Step, ...], str]]:
    """Return the way to each node whose change means something, and the function it is in."""
    found: list[tuple[tuple[Step, ...], str]] = []

    def visit(node: ast.AST, path: tuple[Step, ...], function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".strip(".")
        found.append((path, function))
        for step, inner in _children(node):
            visit(inner, (*path, step), function)

    visit(tree, (), "")
    return found


def _children(node: ast.AST) -> Iterator[tuple[Step, ast.AST]]:
    """Yield the nodes right below, each with its step; annotations and decorators left out."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for at, one in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(one, ast.AST):
                yield (name, at if isinstance(value, list) else None), one


def _at(tree: ast.AST, path: tuple[Step, ...]) -> ast.AST:
    node: object = tree
    for name, at in path:
        node = getattr(node, name) if at is None else getattr(node, name)[at]
    if not isinstance(node, ast.AST):
        raise TypeError("no node there")
    return node


def _replaced(tree: ast.Module, path: tuple[Step, ...], changed: ast.AST) -> str:
    copy = deepcopy(tree)
    parent = _at(copy, path[:-1])
    name, at = path[-1]
    if at is None:
        setattr(parent, name, changed)
    else:
        getattr(parent, name)[at] = changed
    return ast.unparse(ast.fix_missing_locations(copy)) + "\n"


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in a node's place."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for at, one in enumerate(ops):
                if type(one) in _COMPARISONS:
                    turned = [*ops[:at], _COMPARISONS[type(one)](), *ops[at + 1 :]]
                    yield ast.Compare(left=left, ops=turned, comparators=comparators)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            yield ast.BinOp(left=left, op=_ARITHMETIC[type(op)](), right=right)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(op=ast.Or() if isinstance(op, ast.And) else ast.And(), values=values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case _:
            yield from _simple_changes(node)


def _simple_changes(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(value=node.value + 1)
    elif _is_droppable(node):
        yield ast.Pass()


def _is_droppable(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.YieldFrom)
    return isinstance(node, ast.Raise | ast.Continue | ast.Break | ast.AugAssign)


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) < 110 else text[:107] + "..."


# --- running ---------------------------------------------------------------------------------


def run_forked(folder: Path, tests: tuple[str, ...]) -> str:
    """Run tests from a copy in a child that imports the program afresh.

    Returns:
        ``lives``, ``dies``, ``does not start`` or ``no end``.
    """
    base = folder / "temporary"
    subprocess.run(["rm", "-rf", base], check=True)  # deeper than rmtree goes
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            code = _as_child(folder, tests, base)
        finally:
            os._exit(code)
    until = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return {0: "lives", 1: "dies"}.get(code, "does not start")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "no end"


def _as_child(
    folder: Path, tests: tuple[str, ...], base: Path, plugins: Sequence[object] = ()
) -> int:
    os.chdir(folder)
    sys.dont_write_bytecode = True
    sys.path[:] = [str(folder), str(folder / "cli")] + [
        one for one in sys.path if one and not Path(one).is_relative_to(TOP)
    ]
    for name in [one for one in sys.modules if one.partition(".")[0] in ("tests", "durarepo")]:
        del sys.modules[name]
    quiet = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    pytest = import_module("pytest")
    code = pytest.main(["-x", "-q", "--tb=line",
                        "-Wignore::pytest.PytestAssertRewriteWarning",  # imported before
                        "-p", "no:cacheprovider", "-p", "no:randomly",
                        f"--basetemp={base}", *tests], plugins=plugins)  # fmt: skip
    sys.stdout.flush()
    return int(code)


def survey(
    folder: Path, *, seed: int, seconds: float, count: int, subjects: Mapping[str, tuple[str, ...]]
) -> tuple[dict[Mutant, str], int]:
    """Try mutants drawn by a seed until the time or the count is used up.

    Args:
        folder: an empty folder; the checkout itself is never changed.
        seed: of the draws.
        seconds: no mutant is begun after so long.
        count: how many at most.
        subjects: modules, each with its tests.

    Returns:
        How each ended, and how many there would be.

    Raises:
        RuntimeError: the tests of a module fail without any mutation.
    """
    copy_tree(folder)
    compileall.compile_dir(folder, quiet=2, workers=1)
    for name in PRELOADED:
        import_module(name)
    every = [one for file in subjects for one in mutants_of((folder / file).read_text(), file)]
    draws = random.Random(seed)  # noqa: S311  # it has to give the same again
    draws.shuffle(every)
    ended, drawn = dict[Mutant, str](), every[:count]
    for number, file in enumerate(subjects):
        if seconds <= 0:
            break
        chosen = [one for one in drawn if one[0].file == file]
        left = sum(one[0].file in list(subjects)[number:] for one in drawn)
        began = time.monotonic()
        share = max(seconds * len(chosen) / max(left, 1), min(_LEAST_SECONDS, seconds))
        found = _survey_file(folder, file, chosen, tests=subjects[file], until=began + share)
        ended |= found
        seconds -= time.monotonic() - began
        lives = sum(how == "lives" for how in found.values())
        print(f"{file}: {len(found)} of {len(chosen)}, {lives} live", flush=True)  # noqa: T201
    return ended, len(every)


def _survey_file(
    folder: Path, file: str, chosen: list[Drawn], *, tests: tuple[str, ...], until: float
) -> dict[Mutant, str]:
    """Try mutants of one module: as many as can be in one pytest, the others by a fresh start."""
    path = folder / file
    path.write_text(ast.unparse(ast.parse(path.read_text())) + "\n")
    job = Job(
        path=path,
        base=folder / "temporary",
        texts=[(number, text) for number, (_, text) in enumerate(chosen)],
        until=until,
        most_seconds=TIMEOUT_SECONDS,
    )
    ended: dict[Mutant, str] = {}
    for number, how in serve(job, partial(_as_child, folder, tests, job.base)):
        if number < 0 and how != "lives":
            raise RuntimeError(f"tests of {file}: {(folder / 'said').read_text()[-900:]}")
        if number >= 0:
            ended[chosen[number][0]] = how
    for mutant, text in chosen:
        if ended.get(mutant) in ("lives", "not here"):
            in_time = time.monotonic() < until
            how = _tried(folder, file, text(), tests) if in_time else "not tried"
            ended[mutant] = how
            if how == "lives":
                print("survives:", mutant, flush=True)  # noqa: T201
    return {mutant: how for mutant, how in ended.items() if how != "not tried"}


def _tried(folder: Path, file: str, text: str, tests: tuple[str, ...]) -> str:
    path = folder / file
    original, status = path.read_bytes(), path.stat()
    path.write_text(text)
    try:
        return run_forked(folder, tests)
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def main() -> int:
    """Survey, and list what lives; exit with 1 where something lives that nobody explained."""
    from tests.mutations.survivors import SURVIVORS

    parser = argparse.ArgumentParser(prog="python -m tests.mutations.survey", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--module", action="append", choices=list(SUBJECTS), help="all by default")
    parser.add_argument("--out", type=Path, default=FOLDER / "mutations.json")
    asked = parser.parse_args()
    began = time.monotonic()
    chosen = {name: SUBJECTS[name] for name in asked.module or SUBJECTS}
    with tempfile.TemporaryDirectory() as base:
        ended, possible = survey(Path(base), seed=asked.seed, seconds=asked.seconds,
                                 count=asked.count, subjects=chosen)  # fmt: skip
        subprocess.run(["rm", "-rf", Path(base) / "temporary"], check=True)
    command = f"python -m tests.mutations.survey --seed {asked.seed}"
    command += "".join(f" --module {name}" for name in asked.module or ())
    lives = [one for one, how in ended.items() if how == "lives"]
    known = {str(one.mutant) for one in SURVIVORS}  # the module that runs has a class of its own
    new = [one for one in lives if str(one) not in known]
    write_result(asked.out, Result(
        suite="mutations", command=command, commit=commit_now(),
        date=today(), seed=asked.seed, points=len(ended), distinct=len(ended), failures=len(new),
        seconds=round(time.monotonic() - began, 1),
        facts={"possible": possible, "noticed": len(ended) - len(lives), "explained":
               len(lives) - len(new)},
    ))  # fmt: skip
    print("\n".join(f"not explained: {one}" for one in new))  # noqa: T201
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
