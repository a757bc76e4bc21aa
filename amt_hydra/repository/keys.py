"""Whether anything in a training reads a key of a configuration, however it is written.

A file is searched as text first: most keys are read in so many words, and few files have to be parsed. Where it cannot
be told whether something is a read, it counts as one.
"""

import ast
import re
from collections.abc import Iterator

from amt_hydra.repository.flow import Flow
from amt_hydra.repository.source import Source
from amt_hydra.repository.text import after, before, is_set, places
from amt_hydra.repository.trace import ADD, ARGS, called

_SAYS = frozenset({"print", "warn", "warning", "info", "debug", "error", "ValueError", "KeyError", "format"})
# What transformers does with fields of a configuration that a repository's own classes do not mention.
_FOREIGN = frozenset(
    {"tie_word_embeddings", "use_cache", "torch_dtype", "dtype", "is_encoder_decoder", "is_decoder", "return_dict"}
) | frozenset({"output_attentions", "output_hidden_states", "attn_implementation", "chunk_size_feed_forward"})
_SIGNATURE = re.compile(rb"def \w+\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_PARAMETER = re.compile(rb"(?:^|,)\s*(\w+)")
_COMPUTED = re.compile(rb"""(?:[^\n]{0,60}?,[ \t]*)?[fF](["'])((?:\{[^{}\n]*\}|(?!\1)[^\n{}])*)\1""")
_TAKES = (b"[f", b"[F", b"get(f", b"get(F", b"getattr(")


class Keys:
    """Answers for one training."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        # train.py and what parses its flags name them without reading a key: they are looked at last.
        last = set(flow.trace.modules)
        self.files = sorted(flow.files, key=lambda source: source.path in last)
        self._computed: list[re.Pattern[str]] | None = None
        self._named: set[bytes] | None = None

    def is_read(self, key: str) -> bool:
        """Whether a key may be read anywhere."""
        text = key.encode()
        if key in _FOREIGN or text in self._parameters():
            return True
        unsure = []
        for source in self.files:
            if text in source.data:
                clear = True
                for read in _contexts(source.data, text):
                    if read:
                        return True
                    clear &= read is not None
                if not clear:
                    unsure.append(source)
        return any(p.fullmatch(key) for p in self._patterns()) or any(self._reads(key, source) for source in unsure)

    def _parameters(self) -> set[bytes]:
        """Return the names of parameters, as far as they are found in the text: keys spread as keywords go there."""
        if self._named is None:
            signatures = (found for source in self.files for found in _SIGNATURE.findall(source.data))
            self._named = {name for signature in signatures for name in _PARAMETER.findall(signature)}
        return self._named

    def _patterns(self) -> list[re.Pattern[str]]:
        """Return what f-strings that are keys may spell: cfg[f"train_{name}"]."""
        if self._computed is None:
            texts = {text for source in self.files for text in _computed(source.data)}
            parts = [re.split(r"\{[^{}]*\}", text.decode("utf-8", "replace")) for text in texts]
            self._computed = [re.compile(".*".join(map(re.escape, part)), re.DOTALL) for part in parts]
        return self._computed

    def _reads(self, key: str, source: Source) -> bool:
        if self.flow.trace.sources.parsed(source.path) is None:
            return True  # it dies, or its syntax is newer than ours
        return (
            any(argument.arg == key for argument in source.nodes(ast.arg))
            or any(self._is_attribute_read(node, source) for node in source.nodes(ast.Attribute) if node.attr == key)
            or any(self._is_text_read(node, source) for node in source.nodes(ast.Constant) if node.value == key)
            or any(_is_field(node, source) for node in source.nodes(ast.Name) if node.id == key)
        )

    def _is_attribute_read(self, node: ast.Attribute, source: Source) -> bool:
        """Whether object.key reads a configuration: not what the object's own class sets, nor a foreign module's."""
        if not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node.value, ast.Name):
            name = node.value.id
            if name == "self":
                return not _sets(node.attr, node, source)
            module = self.flow.trace.module(source.path)
            if self.flow.trace.kind(node.value, self.flow.unit_of(node, module)) == ARGS:
                return False
            if name in module.imports:
                return self.flow.trace.imported(module, name, carrying=True)[0] is not None
        return True

    def _is_text_read(self, node: ast.Constant, source: Source) -> bool:
        parent = source.parents.get(node)
        match parent:
            case ast.Subscript(slice=index, ctx=context) if index is node:
                return not isinstance(context, ast.Store) or isinstance(source.parents.get(parent), ast.AugAssign)
            case ast.Call():
                unit = self.flow.unit_of(node, self.flow.trace.module(source.path))
                return called(parent) not in _SAYS and self.flow.trace.kind(parent.func, unit) != ADD
            case ast.Compare(left=left, ops=[*ops]):
                membership = any(isinstance(op, ast.In | ast.NotIn) for op in ops)
                return (membership and left is node) or any(n in _walked(source) for n in _names(parent))
            case ast.List() | ast.Tuple() | ast.Set():
                return _is_key_list(parent, source)
            case ast.Assign(targets=targets):
                return bool(set(_names(*targets)) & _keying(source))
            case ast.arguments():
                return bool({a.arg for a in (*parent.posonlyargs, *parent.args, *parent.kwonlyargs)} & _keying(source))
            case ast.Dict() | ast.keyword() | ast.Expr() | ast.JoinedStr() | ast.Return():
                return False
        return True


def _computed(data: bytes) -> Iterator[bytes]:
    """Yield the f-strings by which items and attributes are taken."""
    for word in _TAKES:
        at = data.find(word)
        while at >= 0:
            match = _COMPUTED.match(data, at + len(word.rstrip(b"fF")))
            if match is not None:
                yield match[2]
            at = data.find(word, at + 1)


def _contexts(data: bytes, key: bytes) -> Iterator[bool | None]:
    """Judge each occurrence by what stands beside it: a read, none, or None where it takes a parse to tell."""
    return (_context(data, start, end) for start, end in places(data, key))


def _context(data: bytes, start: int, end: int) -> bool | None:
    line, rest = before(data, start), after(data, end)
    if b"#" in line:
        return False if line.lstrip().startswith(b"#") else None
    if line.endswith((b'["', b"['")) and rest[1:2] == b"]":
        return None if is_set(rest[2:]) else True
    if line.endswith((b'get("', b"get('", b'pop("', b"pop('", b"config.", b"cfg.", b"conf.")):
        return True
    if line.endswith(b"self."):
        return False if _class_sets(data, start, data[start:end]) else None
    return False if line.endswith(b"args.") else None


def _class_sets(data: bytes, at: int, key: bytes) -> bool:
    """Whether the class in whose text a place is sets self.key."""
    begin, end = data.rfind(b"\nclass ", 0, at), data.find(b"\nclass ", at)
    text = data[begin:end]
    own = (
        rest
        for start, stop in places(text, key)
        if before(text, start).endswith(b"self.")
        for rest in (after(text, stop),)
    )
    return begin >= 0 and any(is_set(rest) for rest in own)


def _sets(attr: str, node: ast.AST, source: Source) -> bool:
    """Whether the class around a node sets self.attr."""
    while node in source.parents and not isinstance(node, ast.ClassDef):
        node = source.parents[node]
    return any(
        isinstance(other, ast.Attribute) and other.attr == attr and isinstance(other.ctx, ast.Store)
        for other in ast.walk(node)
    )


def _is_field(node: ast.Name, source: Source) -> bool:
    """Whether a name is a field in a class's body."""
    statement = source.parents.get(node)
    return isinstance(statement, ast.AnnAssign | ast.Assign) and isinstance(source.parents.get(statement), ast.ClassDef)


def _is_key_list(display: ast.expr, source: Source) -> bool:
    """Whether what goes over a list of strings takes items by them, or may: a list that only tests go over does not."""
    parent = source.parents.get(display)
    if isinstance(parent, ast.Compare):
        return bool(set(_names(parent)) & (_keying(source) | _walked(source)))
    if not isinstance(parent, ast.Assign) or not all(isinstance(target, ast.Name) for target in parent.targets):
        return True
    names = set(_names(*parent.targets))
    for node in source.nodes(ast.Name):
        if node.id in names and isinstance(node.ctx, ast.Load):
            around = source.parents.get(node)
            if isinstance(around, ast.Compare):
                continue
            if not isinstance(around, ast.comprehension | ast.For) or around.iter is not node:
                return True
            if set(_names(around.target)) & _keying(source):
                return True
    return False


def _keying(source: Source) -> set[str]:
    """Return the names by which items are taken, or that are handed on."""
    found = {n for subscript in source.nodes(ast.Subscript) for n in _names(subscript.slice)}
    return found | {n for call in source.nodes(ast.Call) for argument in call.args for n in _plain(argument)}


def _walked(source: Source) -> set[str]:
    """Return the names that go over something in a loop."""
    loops: list[ast.For | ast.comprehension] = [*source.nodes(ast.For), *source.nodes(ast.comprehension)]
    return {name for loop in loops for name in _names(loop.target)}


def _names(*nodes: ast.AST) -> Iterator[str]:
    return (inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _plain(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
