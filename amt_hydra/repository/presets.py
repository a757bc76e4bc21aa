"""The data presets: the keys of the dictionaries in data_presets.py, and what of each can be told."""

import ast

from amt_hydra.repository.facts import Computed, Place, Preset
from amt_hydra.repository.namespace import Namespace
from amt_hydra.repository.nodes import Leaf, Node, Tree

PRESET_MARK = b"data_preset"
"""What an imported table's name holds. Only modules that say so are followed: vocabularies are long, and no presets."""
_MEMBERS, _VOCABULARIES, _SPLITS = "presets", "eval_vocab", ("train_split", "validation_split")
_MOST = 10_000
"""No list of vocabularies is longer."""


def find_presets(namespace: Namespace) -> dict[str, Preset]:
    """Return every preset. A name that two dictionaries have is the earlier one's, as in this family's train.py."""
    found: dict[str, Preset] = {}
    for tree in tables(namespace).values():
        for key, node in tree.items.items():
            if isinstance(key, str):
                found.setdefault(key, _preset(node))
    return found


def _preset(node: Node) -> Preset:
    if isinstance(node, Leaf):
        return Preset(node.place)
    members = _members(node.items.get(_MEMBERS))
    vocabularies = node.items.get(_VOCABULARIES) if _MEMBERS in node.items else None
    lacks = tuple(split for split in _SPLITS if _is_none(node.items.get(split)))
    return Preset(node.place, members, _length(vocabularies), lacks)


def _members(node: Node | None) -> tuple[str, ...] | None:
    value = node.value if isinstance(node, Leaf) else None
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(value)


def _is_none(node: Node | None) -> bool:
    return isinstance(node, Leaf) and node.value is None


def _length(node: Node | None) -> int | None:
    """Return how long a list is, whatever stands in it: vocabularies are names that are not followed."""
    if not isinstance(node, Leaf):
        return None
    if isinstance(node.value, list | tuple):
        return len(node.value)
    try:
        return length(ast.parse(node.value.text, mode="eval").body) if isinstance(node.value, Computed) else None
    except (SyntaxError, RecursionError):
        return None


def length(node: ast.expr) -> int | None:
    """Return the length of a list that is displayed, added or repeated; None where that cannot be told."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            parts = [length(item.value) if isinstance(item, ast.Starred) else 1 for item in items]
            known = [part for part in parts if part is not None]
            return sum(known) if len(known) == len(parts) else None
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            first, second = length(left), length(right)
            return first + second if first is not None and second is not None else None
        case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=int(times)), right=items):
            return _repeated(length(items), times)
        case ast.BinOp(op=ast.Mult(), left=items, right=ast.Constant(value=int(times))):
            return _repeated(length(items), times)
    return None


def _repeated(one: int | None, times: int) -> int | None:
    return one * max(times, 0) if one is not None and one <= _MOST and times <= _MOST else None


def unread_presets(namespace: Namespace) -> list[tuple[Place, str]]:
    """Return place and text of what may hold presets that cannot be named: a comprehension, a computed spread."""
    found = [entry for tree in tables(namespace).values() for entry in tree.unread]
    for name in _named(namespace):
        node = namespace.find(name)
        if isinstance(node, Leaf) and isinstance(node.value, Computed):
            found.append((node.place, node.value.text))
    return found


def tables(namespace: Namespace) -> dict[str, Tree]:
    """Return the dictionaries of presets: those named so, else every dictionary of dictionaries."""
    named = {name: namespace.find(name) for name in _named(namespace)}
    found = {name: node for name, node in named.items() if isinstance(node, Tree)}
    if found:
        return found
    return {
        name: node
        for name, node in namespace.names.items()
        if isinstance(node, Tree) and node.items and all(isinstance(child, Tree) for child in node.items.values())
    }


def _named(namespace: Namespace) -> list[str]:
    # An imported table counts by its full name only: upstream imports drum_vocab_presets, which are no data presets.
    own = [name for name in namespace.names if "preset" in name.lower()]
    return own + sorted(name for name in namespace.imported() - set(own) if PRESET_MARK.decode() in name.lower())
