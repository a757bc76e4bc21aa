"""Every place at which the repository reads an environment variable, with the expression that it makes of it."""

import ast
from collections.abc import Iterator
from functools import cached_property

from amt_hydra.repository.facts import Place, Switch
from amt_hydra.repository.source import Source, Sources

MARKS = (b"environ", b"getenv")
_GETTERS = frozenset({"get", "getenv"})
# What an expression may be made of besides the variable: anything else ends it.
_PARTS = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute, ast.BinOp, ast.Subscript)


def find_switches(sources: Sources, files: list[Source]) -> tuple[Switch, ...]:
    """Return the reads in all files; note those whose variable's name is computed."""
    found: list[Switch] = []
    wrappers: dict[str, tuple[Source, ast.FunctionDef]] = {}
    marked = [f for f in files if any(mark in f.data for mark in MARKS) and sources.parsed(f.path)]
    for source in marked:
        reader = SwitchReader(sources, source)
        found.extend(reader.read())
        wrappers |= {name: (source, function) for name, function in reader.wrappers.items()}
    for name, (home, function) in wrappers.items():
        for source in files:
            if f"{name}(".encode() in source.data and sources.parsed(source.path):
                reader = SwitchReader(sources, source, wrapper=(name, function, home))
                found.extend(reader.read())
    return tuple(sorted(found, key=lambda s: (str(s.place.file), s.place.line)))


class SwitchReader:
    """Reads one file. With a wrapper (a function that reads the variable it is given the name of), reads its calls."""

    def __init__(
        self, sources: Sources, source: Source, wrapper: tuple[str, ast.FunctionDef, Source] | None = None
    ) -> None:
        self.sources = sources
        self.source = source
        self.wrapper = wrapper
        self.wrappers: dict[str, ast.FunctionDef] = {}
        self._environ, self._getenv = _aliases(source)
        self._definitions = _definitions(source)

    def read(self) -> Iterator[Switch]:
        """Yield the switches of this file."""
        nodes = (*self.source.nodes(ast.Call), *self.source.nodes(ast.Subscript), *self.source.nodes(ast.Compare))
        for node in nodes:
            name = self._variable(node)
            if name is None:
                continue
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield from self._switches(node, name.value)
            elif isinstance(name, ast.Name) and self._is_wrapped(node, name.id):
                continue
            else:
                constant = self._definitions.get(name.id) if isinstance(name, ast.Name) else None
                match constant:
                    case ast.Assign(value=ast.Constant(value=str(text))):
                        yield from self._switches(node, text)
                    case _:
                        words = f"{self.source.text(node)} reads an environment variable whose name is computed"
                        self.sources.problem(self.source, node, words)

    def _variable(self, node: ast.AST) -> ast.expr | None:
        """Return the expression that names the variable which a node reads; None where it reads none."""
        match node:
            case ast.Call(func=ast.Name(id=called), args=[name, *_]) if self.wrapper and called == self.wrapper[0]:
                return name if isinstance(name, ast.Constant) else None
            case ast.Call(func=ast.Attribute(attr=called), args=[name, *_]) if (
                self.wrapper and called == self.wrapper[0]
            ):
                return name if isinstance(name, ast.Constant) else None
            case _ if self.wrapper:
                return None
            case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[name, *_]) if self._is_environ(owner):
                return name
            case ast.Call(func=func, args=[name, *_]) if self._is_getenv(func):
                return name
            case ast.Subscript(value=owner, slice=name, ctx=ast.Load()) if self._is_environ(owner):
                return name
            case ast.Compare(left=name, ops=[ast.In() | ast.NotIn()], comparators=[owner]) if self._is_environ(owner):
                return name
        return None

    def _is_environ(self, node: ast.expr) -> bool:
        return _dotted(node) in self._environ

    def _is_getenv(self, node: ast.expr) -> bool:
        return _dotted(node) in self._getenv

    def _is_wrapped(self, node: ast.expr, name: str) -> bool:
        """Note a function that reads the variable whose name is its first parameter."""
        function = self._around(node, ast.FunctionDef)
        if not isinstance(function, ast.FunctionDef) or name not in {a.arg for a in function.args.args}:
            return False
        self.wrappers[function.name] = function
        return True

    def _around(self, node: ast.AST, kind: type[ast.AST]) -> ast.AST | None:
        while node in self.source.parents:
            node = self.source.parents[node]
            if isinstance(node, kind):
                return node
        return None

    # From the read to the whole expression.

    def _switches(self, node: ast.expr, name: str) -> Iterator[Switch]:
        whole = self._largest(node)
        place = Place(self.source.path, node.lineno)
        seen: set[str] = set()
        for use in self._uses(whole):
            used = self._largest(use)
            shown = whole if used is use else used  # the truth of a bare name is that of what it was given
            text = self.source.text(shown)
            if self._decides(used, use) and text not in seen:
                seen.add(text)
                given = [] if shown is whole else [ast.unparse(self.source.parents[whole])]
                yield Switch(name, text, place, self._needs(shown, whole, given))
        if not seen:
            yield Switch(
                name, self.source.text(whole), place, self._needs(whole, whole, []), not self._decides(whole, node)
            )

    def _largest(self, node: ast.expr) -> ast.expr:
        """Return the largest expression around a read whose only unknown is that read, without a `not` around it."""
        best = node
        here: ast.AST = node
        while isinstance(parent := self.source.parents.get(here), _PARTS) and self._only(parent, here):
            here = parent
            if isinstance(here, ast.expr) and not self._is_callee(here):
                best = here
        while isinstance(best, ast.UnaryOp) and isinstance(best.op, ast.Not):
            best = best.operand
        return best

    def _decides(self, node: ast.expr, read: ast.expr) -> bool:
        """Whether it is the truth of an expression that counts: a comparison, or one that stands where a test does."""
        if isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.IfExp):
            return True
        if isinstance(node, ast.Call) and node is not read:
            called = getattr(node.func, "id", "")
            if called == "bool" or called in self._definitions:
                return True
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert):
            return parent.test is node
        return isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))

    def _is_callee(self, node: ast.AST) -> bool:
        parent = self.source.parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def _only(self, parent: ast.AST, known: ast.AST) -> bool:
        """Whether every other part of an expression is literal, a constant of the module or a function of it."""
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func is not known:
            return False  # module.function(…): what it does is not in sight
        return all(child is known or self._is_known(child) for child in ast.iter_child_nodes(parent))

    def _is_known(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return isinstance(node.ctx, ast.Load) and (node.id in self._definitions or node.id in _BUILTIN_NAMES)
        if isinstance(node, ast.Attribute | ast.Await | ast.Lambda):
            return False
        return all(self._is_known(child) for child in ast.iter_child_nodes(node))

    def _uses(self, whole: ast.expr) -> list[ast.expr]:
        """Return where the name is used that a whole read is assigned to, if it is assigned nothing else."""
        assignment = self.source.parents.get(whole)
        if not isinstance(assignment, ast.Assign) or len(assignment.targets) != 1:
            return []
        target = assignment.targets[0]
        same = self._named.get(_dotted(target), [])
        if isinstance(target, ast.Name):
            scope = self._around(assignment, ast.FunctionDef)
            same = [n for n in same if scope is None or self._within(n, scope)]
        stored = sum(not isinstance(n.ctx, ast.Load) for n in same)
        return [n for n in same if isinstance(n.ctx, ast.Load)] if stored == 1 else []

    def _within(self, node: ast.AST, scope: ast.AST) -> bool:
        while node is not scope and node in self.source.parents:
            node = self.source.parents[node]
        return node is scope

    @cached_property
    def _named(self) -> dict[str, list[ast.Name | ast.Attribute]]:
        """Every name and every a.b of the file, by its text."""
        found: dict[str, list[ast.Name | ast.Attribute]] = {}
        nodes: list[ast.Name | ast.Attribute] = [*self.source.nodes(ast.Name), *self.source.nodes(ast.Attribute)]
        for node in nodes:
            found.setdefault(_dotted(node), []).append(node)
        return found

    def _needs(self, used: ast.expr, whole: ast.expr, extra: list[str]) -> tuple[str, ...]:
        """Return the source of the constants and functions that an expression names, and of those that they name."""
        texts = dict.fromkeys(extra)
        definitions = self._definitions
        queue: list[ast.AST] = [used, whole]
        if self.wrapper:
            name, function, home = self.wrapper
            definitions = {**definitions, **_definitions(home), name: function}
            texts[ast.unparse(function)] = None
            queue.append(function)
        while queue:
            for node in ast.walk(queue.pop()):
                found = definitions.get(node.id) if isinstance(node, ast.Name) else None
                if found is not None and ast.unparse(found) not in texts:
                    texts[ast.unparse(found)] = None
                    queue.append(found)
        return tuple(texts)


def _aliases(source: Source) -> tuple[frozenset[str], frozenset[str]]:
    """Return what os.environ and os.getenv are called in a module."""
    environ, getenv = {"os.environ"}, {"os.getenv", "os.environ.get"}
    for plain in source.nodes(ast.Import):
        environ |= {f"{a.asname}.environ" for a in plain.names if a.name == "os" and a.asname}
        getenv |= {f"{a.asname}.getenv" for a in plain.names if a.name == "os" and a.asname}
    for named in source.nodes(ast.ImportFrom):
        if named.module == "os":
            environ |= {a.asname or a.name for a in named.names if a.name == "environ"}
            getenv |= {a.asname or a.name for a in named.names if a.name == "getenv"}
    return frozenset(environ), frozenset(getenv)


def _dotted(node: ast.expr) -> str:
    """Return a.b of such an expression, "" of any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _definitions(source: Source) -> dict[str, ast.Assign | ast.FunctionDef]:
    """Return the module's functions, and its constants that are bound once."""
    tree = source.tree
    assert tree is not None
    found: dict[str, ast.Assign | ast.FunctionDef] = {}
    twice: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                found[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]):
                twice |= {name} & set(found)
                found[name] = node
    return {name: node for name, node in found.items() if name not in twice}


_BUILTIN_NAMES = frozenset({"bool", "int", "float", "str", "len", "set", "tuple", "list", "frozenset", "isinstance"})
