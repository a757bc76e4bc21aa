"""The names of a module: what they are bound to, here or where they are imported from."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from amt_hydra.repository.evaluate import Scope, Undecided, evaluate
from amt_hydra.repository.facts import Computed, Place
from amt_hydra.repository.nodes import Leaf, Node, Tree, plain
from amt_hydra.repository.source import Source

Importer = Callable[[Path, str, int], "Names | None"]
"""Finds the namespace that (importing file, module, level) means; None where it is not the repository's own."""


class Names:
    """The names of one module as they stand where it ends.

    `names` are those bound in this very file; imports are looked up when asked for.
    """

    def __init__(self, source: Source, importer: Importer = lambda *_: None) -> None:
        self.source = source
        self.names: dict[str, Node] = {}
        self._importer = importer
        self.imports: dict[str, tuple[str, int, str | None]] = {}
        self.stars: list[tuple[str, int]] = []
        self._sought: set[str] = set()
        self.scope = Scope(hook=self._look_up)

    def imported(self) -> set[str]:
        """Return the names that imports bind, those of a star import included where its module is ours."""
        found = set(self.imports)
        for module, level in self.stars:
            other = self._importer(self.source.path, module, level)
            if other is not None:
                found |= {name for name in other.names if not name.startswith("_")}
        return found

    def find(self, name: str) -> Node | None:
        """Return what a name is bound to, here or by an import of the repository's own."""
        if name in self.names:
            return self.names[name]
        if name in self._sought:  # modules that import a name from each other in a circle
            return None
        self._sought.add(name)
        try:
            found = (other.find(wanted) for other, wanted in self._elsewhere(name))
            return next((node for node in found if node is not None), None)
        finally:
            self._sought.remove(name)

    def _elsewhere(self, name: str) -> Iterator[tuple["Names", str]]:
        """Yield the modules that a name may be imported from, with what it is called there."""
        module, level, attribute = self.imports.get(name, ("", 0, None))
        if attribute is not None:
            wanted = [(module, level, attribute)]
        else:
            wanted = [(module, level, name) for module, level in self.stars if not name.startswith("_")]
        for module, level, attribute in wanted:
            other = self._importer(self.source.path, module, level)
            if other is not None:
                yield other, attribute

    def place(self, node: ast.expr | ast.stmt | ast.keyword) -> Place:
        """Return where a node of this module stands."""
        return Place(self.source.path, node.lineno)

    def value(self, node: ast.expr) -> object:
        """Return what an expression is worth at the module's end: its value, or Computed."""
        try:
            return evaluate(node, self.scope)
        except Undecided:
            found = self.lookup(node)
            if isinstance(found, Leaf) and isinstance(found.value, Computed):
                return found.value
            return Computed(self.source.text(node))

    def _look_up(self, node: ast.expr, _: Scope) -> object:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Subscript() as owner], keywords=[]):
                tree = self.lookup(owner)  # its keys can be counted where its values cannot be computed
                if isinstance(tree, Tree) and not tree.unread:
                    return len(tree.items)
        found = self.lookup(node)
        if found is None:
            raise Undecided
        return plain(found)

    def lookup(self, node: ast.expr) -> Node | None:
        """Return the node that a name or a chain of constant subscripts refers to."""
        if isinstance(node, ast.Name):
            return self.find(node.id)
        if isinstance(node, ast.Attribute):
            other = self._module(node.value)
            return other.find(node.attr) if other is not None else None
        if isinstance(node, ast.Subscript):
            owner = self.lookup(node.value)
            if isinstance(owner, Tree):
                try:
                    return owner.items.get(evaluate(node.slice, self.scope))
                except (Undecided, TypeError):
                    return None
        return None

    def _module(self, node: ast.expr) -> "Names | None":
        """Return the namespace that a module's name refers to: `config` after `from config import config`."""
        module, level, attribute = self.imports.get(ast.unparse(node), (None, 0, None))
        if module is None:
            return None
        return self._importer(self.source.path, ".".join(filter(None, (module, attribute))), level)
