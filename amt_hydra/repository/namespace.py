"""What a module's top level binds, worked out statement by statement without running it.

A dictionary becomes a `Tree` that keeps the place of every key; anything else becomes a `Leaf`. Later writes
(`cfg["a"]["b"] = 1`, `cfg.update({…})`) are followed; a name that an `if` binds to two values is Computed with both.
"""

import ast
from collections.abc import Sequence

from amt_hydra.repository.evaluate import Undecided, evaluate
from amt_hydra.repository.facts import Computed, Place
from amt_hydra.repository.names import Names
from amt_hydra.repository.nodes import Leaf, Node, Tree, clone, join


class Namespace(Names):
    """The names of one module as they stand where it ends."""

    def run(self) -> "Namespace":
        """Follow the module's statements; apart from the constructor, so that a circular import finds what there is."""
        if self.source.tree is not None:
            self._run(self.source.tree.body)
        return self

    # Building nodes from expressions.

    def _build(self, node: ast.expr, place: Place) -> Node:
        if isinstance(node, ast.Constant):  # most of them
            return Leaf(node.value, place)
        found = self.lookup(node)
        if found is not None:
            # An alias of a dictionary shares it, as in Python; a scalar is written anew at this place.
            return found if isinstance(found, Tree) else Leaf(found.value, place)
        match node:
            case ast.Dict():
                return self._display(node, place)
            case ast.Call(func=ast.Name(id="dict")) if len(node.args) < 2:
                return self._dict_call(node, place)
            case (
                ast.Call(func=ast.Attribute(attr="copy" | "deepcopy"), args=[original])
                | ast.Call(func=ast.Name(id="deepcopy"), args=[original])
                | ast.Call(func=ast.Attribute(attr="copy", value=original), args=[])
            ):
                return clone(self._build(original, place), {})
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                first, second = self._build(left, place), self._build(right, place)
                if isinstance(first, Tree):
                    merged = Tree(place, dict(first.items), list(first.unread))
                    self._merge(merged, second, right)
                    return merged
        return Leaf(self.value(node), place)

    def _display(self, node: ast.Dict, place: Place) -> Tree:
        tree = Tree(place)
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                self._merge(tree, self._build(value, self.place(value)), value)
            else:
                self._put(tree, key, self._build(value, self.place(key)))
        return tree

    def _dict_call(self, node: ast.Call, place: Place) -> Tree:
        tree = Tree(place)
        self._update(tree, node)
        return tree

    def _update(self, tree: Tree, call: ast.Call) -> None:
        """Apply the arguments of dict(…) or of .update(…)."""
        for argument in call.args:
            self._merge(tree, self._build(argument, self.place(argument)), argument)
        for keyword in call.keywords:
            built = self._build(keyword.value, self.place(keyword))
            if keyword.arg is None:
                self._merge(tree, built, keyword.value)
            else:
                tree.items[keyword.arg] = built

    def _put(self, tree: Tree, key: ast.expr, value: Node) -> None:
        if isinstance(key, ast.Constant):
            tree.items[key.value] = value
            return
        try:
            tree.items[evaluate(key, self.scope)] = value
        except (Undecided, TypeError):
            tree.unread.append((self.place(key), self.source.text(key)))

    def _merge(self, tree: Tree, other: Node, node: ast.expr) -> None:
        if isinstance(other, Tree):
            tree.items.update(other.items)
            tree.unread.extend(other.unread)
        else:
            tree.unread.append((self.place(node), self.source.text(node)))

    # Following statements.

    def _run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.If():
                    self._branch(statement)
                case ast.Try():
                    handlers = (handler.body for handler in statement.handlers)
                    self._either("an exception", [[*statement.body, *statement.orelse], *handlers])
                    self._run(statement.finalbody)
                case ast.With():
                    self._run(statement.body)
                case ast.For() | ast.While():
                    self._loop(statement)
                case _:
                    self._simple(statement)

    def _simple(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.AugAssign():
                self._augment(statement)
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.Import() | ast.ImportFrom():
                self._import(statement)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._remove(target)

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                self.imports[alias.asname or alias.name] = (alias.name, 0, None)
            elif alias.name == "*":
                self.stars.append((statement.module or "", statement.level))
            else:
                self.imports[alias.asname or alias.name] = (statement.module or "", statement.level, alias.name)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for index, part in enumerate(target.elts):
                self._assign(part, values[index] if len(values) == len(target.elts) else value)
            return
        self._bind(target, self._build(value, self.place(target)))

    def _bind(self, target: ast.expr, node: Node) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = node
        elif isinstance(target, ast.Subscript):
            owner = self.lookup(target.value)
            if isinstance(owner, Tree):
                self._put(owner, target.slice, node)

    def _augment(self, statement: ast.AugAssign) -> None:
        target = statement.target
        found = self.lookup(target)
        if isinstance(found, Tree) and isinstance(statement.op, ast.BitOr):
            self._merge(found, self._build(statement.value, self.place(target)), statement.value)
            return
        whole = ast.copy_location(ast.BinOp(target, statement.op, statement.value), statement)
        try:
            value: object = evaluate(whole, self.scope)
        except Undecided:
            value = Computed(ast.unparse(whole))
        self._bind(target, Leaf(value, self.place(target)))

    def _call(self, call: ast.Call) -> None:
        if not isinstance(call.func, ast.Attribute):
            return
        owner = self.lookup(call.func.value)
        if not isinstance(owner, Tree):
            return
        if call.func.attr == "update":
            self._update(owner, call)
        elif call.func.attr == "setdefault" and len(call.args) == 2:
            try:
                key = evaluate(call.args[0], self.scope)
                owner.items.setdefault(key, self._build(call.args[1], self.place(call)))
            except Undecided:
                owner.unread.append((self.place(call), self.source.text(call)))
        elif call.func.attr in ("pop", "clear"):
            self._remove(ast.Subscript(call.func.value, call.args[0]) if call.args else call.func.value)

    def _remove(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.names.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            owner = self.lookup(target.value)
            if isinstance(owner, Tree):
                try:
                    owner.items.pop(evaluate(target.slice, self.scope), None)
                except Undecided:
                    owner.unread.append((self.place(target.value), self.source.text(target.value)))

    def _branch(self, statement: ast.If) -> None:
        try:
            taken = statement.body if evaluate(statement.test, self.scope) else statement.orelse
        except Undecided:
            self._either(self.source.text(statement.test), [statement.body, statement.orelse])
        else:
            self._run(taken)

    def _either(self, test: str, bodies: Sequence[Sequence[ast.stmt]]) -> None:
        """Follow each body from the same start; what they leave different is Computed with every value."""
        start = self.names
        ends: list[dict[str, Node]] = []
        for body in bodies:
            known: dict[int, Tree] = {}
            self.names = {name: clone(node, known) for name, node in start.items()}
            self._run(body)
            ends.append(self.names)
        self.names = join(test, ends)

    def _loop(self, statement: ast.For | ast.While) -> None:
        """Whatever a loop writes cannot be known; a dictionary that it writes to may gain any key."""
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    self._bind(node, Leaf(Computed(f"{name}, set in a loop"), self.place(node)))
                case (
                    ast.Subscript(ctx=ast.Store() | ast.Del(), value=owner)
                    | ast.Call(func=ast.Attribute(attr="update" | "setdefault" | "pop", value=owner))
                ):
                    self._open(owner, node)

    def _open(self, owner: ast.expr, node: ast.expr) -> None:
        found = self.lookup(owner)
        while found is None and isinstance(owner, ast.Subscript):
            owner = owner.value
            found = self.lookup(owner)
        if isinstance(found, Tree):
            found.unread.append((self.place(node), f"{self.source.text(node)}, in a loop"))
