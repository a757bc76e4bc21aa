"""The nodes of a syntax tree: by their type, with the node around each, and those within one."""

import ast


class Index:
    """The nodes of a tree by their type, and the parent of each."""

    def __init__(self, tree: ast.Module | None) -> None:
        self.kinds: dict[type[ast.AST], list[ast.AST]] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        parents = self.parents
        queue: list[ast.AST] = [tree] if tree is not None else []
        for node in queue:  # it grows as it is gone through; written out, since this is a tenth of a read
            kind = node.__class__
            if kind in self.kinds:
                self.kinds[kind].append(node)
            else:
                self.kinds[kind] = [node]
            for name in fields(kind):
                value = getattr(node, name, None)
                if value.__class__ is list:
                    for item in value:
                        if isinstance(item, ast.AST):
                            parents[item] = node
                            queue.append(item)
                elif isinstance(value, ast.AST):
                    parents[value] = node
                    queue.append(value)


# Fields that hold no node, or one of the shared ones (Load, Add, Eq, …) that say nothing more.
_BARE = frozenset(
    ("ctx", "op", "ops", "id", "attr", "arg", "name", "kind", "module", "level", "asname", "rest", "simple")
)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: (), ast.alias: (), ast.Name: ()}


def fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a kind of node that may hold nodes."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(name for name in kind._fields if name not in _BARE)
    return _FIELDS[kind]


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly within one."""
    found: list[ast.AST] = []
    for name in fields(node.__class__):
        value = getattr(node, name, None)
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found
