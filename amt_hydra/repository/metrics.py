"""The names under which metrics are logged, as far as the source spells them out."""

import ast
import re
from collections.abc import Iterator, Sequence

from amt_hydra.repository.facts import Place, Repository
from amt_hydra.repository.source import Source, Sources

_LOGS = re.compile(rb"\.log(?:_dict)?\s*\(")
# The last letters of math.log, np.log, torch.log: a file that logs nothing else need not be parsed.
_NUMBERS = (b"math", b"np", b"numpy", b"torch", b"cmath", b"jnp")
# A comment, a string, or nothing else of interest; a string's prefix stays outside, so that f"a/{b}" gives a/{b}.
_TOKENS = re.compile(
    rb"#[^\n]*|"
    rb'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|'
    rb"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''|"
    rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'
    rb"'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
_CANDIDATE = re.compile(rb"""["'}][\w.@+-]*/[\w./@+-]*["'{]""")
_NAME = re.compile(r"[A-Za-z0-9][\w.@+-]*/[\w./@+-]*|/[\w.@+-]+")
_ADDED = re.compile(r"(?:_step|_epoch)?(?:/dataloader_idx_\d+)?$")
"""What Lightning adds to a name, by the way in which it is logged."""
_ANY = ".*"
_PERCENT, _BRACES = re.compile(r"%[-+ #0-9.]*[a-zA-Z]|%\([^)]*\)[-+ #0-9.]*[a-zA-Z]"), re.compile(r"\{[^{}]*\}")
_FOREIGN = frozenset({"math", "np", "numpy", "torch", "logging", "logger", "cmath", "jnp", "wandb", "console"})


class Metrics:
    """What is logged: names, and the places at which the name is computed."""

    def __init__(self) -> None:
        self.names: dict[str, Place] = {}
        self.computed: list[Place] = []
        self.patterns: dict[str, None] = {}
        self.whole = True
        """False once a name is computed of which nothing is known."""

    def read(self, sources: Sources, files: Sequence[Source]) -> "Metrics":
        """Read every file that logs anything."""
        for source in files:
            if _may_log(source.data) and sources.parsed(source.path):
                self._file(source)
        return self

    def _file(self, source: Source) -> None:
        calls = [call for call in source.nodes(ast.Call) if _is_metric(call)]
        bound = _bound(source) if calls else {}
        for call in calls:
            place = Place(source.path, call.lineno)
            for name in _logged(call, bound):
                if isinstance(name, str):
                    self.names.setdefault(name, place)
                else:
                    self.computed.append(place)
                    pattern = _pattern(name)
                    self.whole &= pattern is not None
                    self.patterns |= {pattern: None} if pattern is not None else {}


def find_strings(files: Sequence[Source], known: Sequence[str]) -> dict[str, Place]:
    """Return strings that could be a metric's name or part of one, found lexically: a parse of all would be slow."""
    found: dict[str, Place] = {}
    skip = frozenset(known)
    for source in files:
        if not any(_CANDIDATE.search(row) for row in _rows(source.data)):
            continue
        line, counted = 1, 0
        for match in _TOKENS.finditer(source.data):
            token = match[0]
            if b"/" not in token or token.startswith((b"#", b'"""', b"'''")):
                continue
            line += source.data.count(b"\n", counted, match.start())
            counted = match.start()
            for part in re.split(r"\{[^{}]*\}", token[1:-1].decode("utf-8", "replace")):
                if _NAME.fullmatch(part) and part not in skip:
                    found.setdefault(part, Place(source.path, line))
    return found


def _rows(data: bytes) -> Iterator[bytes]:
    """Yield the lines that hold a slash."""
    at = data.find(b"/")
    while at >= 0:
        end = data.find(b"\n", at)
        end = end if end >= 0 else len(data)
        yield data[data.rfind(b"\n", 0, at) + 1 : end]
        at = data.find(b"/", end)


def logs(repository: Repository, name: str) -> bool | None:
    """Return whether a metric is logged; None where that cannot be told: a computed name may be this one."""
    if name in repository.metrics:
        return True
    plain = _ADDED.sub("", name)
    if plain in repository.metrics:
        return None
    if not repository.computed_metrics:
        return False
    patterns = repository.metric_patterns
    if patterns is None:
        return None
    may_be = any(re.fullmatch(pattern, text, re.DOTALL) for pattern in patterns for text in (name, plain))
    return None if may_be else False


def _pattern(node: ast.expr | None) -> str | None:
    """Return a regular expression for what a computed name may be; None where it may be anything."""
    pattern = _spelled(node) if node is not None else _ANY
    return pattern if pattern.replace(_ANY, "") else None


def _spelled(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=parts):
            return "".join(map(_spelled, parts))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _spelled(left) + _spelled(right)
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str(text))):
            return _with_gaps(_PERCENT, text)
        case ast.Call(func=ast.Attribute(attr="format", value=ast.Constant(value=str(text)))):
            return _with_gaps(_BRACES, text)
    return _ANY


def _with_gaps(gap: re.Pattern[str], text: str) -> str:
    return _ANY.join(map(re.escape, gap.split(text)))


def _may_log(data: bytes) -> bool:
    return any(not data.endswith(_NUMBERS, 0, match.start()) for match in _LOGS.finditer(data))


def _is_metric(call: ast.Call) -> bool:
    """Whether a call is Lightning's log or log_dict, and not math.log, tensor.log or a logger's."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "log_dict":
        return True
    if call.func.attr != "log" or (isinstance(call.func.value, ast.Name) and call.func.value.id in _FOREIGN):
        return False
    return len(call.args) + len(call.keywords) > 1


def _logged(call: ast.Call, bound: dict[str, list[ast.expr]]) -> Iterator[str | ast.expr | None]:
    """Yield the names that a call logs: as text, as the expression that computes it, or None where there is none."""
    assert isinstance(call.func, ast.Attribute)
    keyword = "dictionary" if call.func.attr == "log_dict" else "name"
    given = call.args[:1] or [k.value for k in call.keywords if k.arg == keyword]
    for node in given:
        for value in _values(node, bound):
            if call.func.attr == "log":
                yield _text(value) or value
            elif isinstance(value, ast.Dict):
                for key in value.keys:
                    yield from (_text(k) or k for k in (_values(key, bound) if key is not None else [None]))
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
                yield from (k.arg for k in value.keywords)
            else:
                yield None


def _values(node: ast.expr, bound: dict[str, list[ast.expr]]) -> list[ast.expr]:
    """Return what a name may be bound to in this file, both sides of a choice, or the expression itself."""
    if isinstance(node, ast.IfExp):
        return [*_values(node.body, bound), *_values(node.orelse, bound)]
    if isinstance(node, ast.Name):
        return bound.get(node.id, [node])
    return [node]


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _bound(source: Source) -> dict[str, list[ast.expr]]:
    """Return the values of the names that are bound by plain assignments only, anywhere in a file."""
    found: dict[str, list[ast.expr]] = {}
    plain: set[int] = set()
    for assignment in source.nodes(ast.Assign):
        for target in assignment.targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(assignment.value)
                plain.add(id(target))
    other = {n.id for n in source.nodes(ast.Name) if not isinstance(n.ctx, ast.Load) and id(n) not in plain}
    other |= {argument.arg for argument in source.nodes(ast.arg)}
    # metrics[f"{stage}/loss"] = … and metrics.update(…): keys that the display does not show.
    changed = [s.value for s in source.nodes(ast.Subscript) if isinstance(s.ctx, ast.Store)]
    changed += [a.value for a in source.nodes(ast.Attribute) if a.attr in ("update", "setdefault")]
    other |= {node.id for node in changed if isinstance(node, ast.Name)}
    return {name: values for name, values in found.items() if name not in other}
