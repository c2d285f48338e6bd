"""Source files as the architecture tests see them: parsed, with their imports resolved.

A rule is a function from a `Source` to findings, so that the same function judges the real tree
and a planted violation. Reads files; runs none of them. Start at `Source`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LIBRARY = "durarepo"
COMMAND_LINE = "cli/durarepo_cli"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One module: where it lies below the checkout, and what it says."""

    path: str
    tree: ast.Module
    imported: dict[str, str]

    @classmethod
    def parse(cls, path: str, text: str) -> "Source":
        """Return the source of ``text`` as if it lay at ``path``."""
        tree = ast.parse(text, path)
        return cls(path=path, tree=tree, imported=dict(_imports(tree)))

    def name_of(self, node: ast.AST) -> str:
        """Return the dotted name of an expression with imports resolved, or an empty text.

        ``u`` is ``os.unlink`` after ``from os import unlink as u``.
        """
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.name_of(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def finding(self, node: ast.AST, what: str) -> str:
        """Return one line of a report: path, line and what is wrong there."""
        return f"{self.path}:{getattr(node, 'lineno', 0)}: {what}"

    def functions(self) -> Iterator[tuple[str, ast.AST]]:
        """Yield each outermost function or method with its qualified name, and the module's rest.

        What stands outside of functions comes node by node under the name ``<module>``.
        """
        yield from _functions(self.tree, "")


def tree_sources(*folders: str, pattern: str = "*.py") -> list[Source]:
    """Return every Python file of that pattern below the folders of the checkout."""
    paths = sorted(path for folder in folders for path in (TOP / folder).rglob(pattern))
    return [Source.parse(path.relative_to(TOP).as_posix(), path.read_text()) for path in paths]


def is_below(path: str, places: tuple[str, ...]) -> bool:
    """Return whether ``path`` is one of ``places``; a place with a final slash is a folder."""
    folders = tuple(place for place in places if place.endswith("/"))
    return path in places or path.startswith(folders)


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".", 1)[0]
                yield alias.asname or name, name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _functions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        else:
            yield prefix + "<module>", node
