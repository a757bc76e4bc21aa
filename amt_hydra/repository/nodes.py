"""Values of a module's top level: dictionaries that keep the place of every key, and leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from amt_hydra.repository.evaluate import Undecided
from amt_hydra.repository.facts import Computed, Place


@dataclass(slots=True)
class Leaf:
    """A value that is not a dictionary: a literal or Computed."""

    value: object
    place: Place


@dataclass(slots=True)
class Tree:
    """A dictionary. `unread` holds what may add keys that nobody can name."""

    place: Place
    items: dict[object, "Leaf | Tree"] = field(default_factory=dict)
    unread: list[tuple[Place, str]] = field(default_factory=list)


Node = Leaf | Tree


def plain(node: Node) -> object:
    """Return the Python value of a node, or raise Undecided."""
    if isinstance(node, Leaf):
        if isinstance(node.value, Computed):
            raise Undecided
        return node.value
    if node.unread:
        raise Undecided
    return {key: plain(value) for key, value in node.items.items()}


def clone(node: Node, known: dict[int, Tree]) -> Node:
    """Copy a node; two names of one dictionary stay so, by `known`. Leaves are never changed, and shared."""
    if isinstance(node, Leaf):
        return node
    if id(node) not in known:
        known[id(node)] = copied = Tree(node.place, {}, list(node.unread))
        copied.items.update((key, clone(child, known)) for key, child in node.items.items())
    return known[id(node)]


def join(test: str, ends: Sequence[Mapping[str, Node]]) -> dict[str, Node]:
    """Return the names after a choice: what its branches leave different is Computed with every value."""
    names = dict.fromkeys(name for end in ends for name in end)
    return {name: _join_nodes(test, [end.get(name) for end in ends]) for name in names}


def _join_nodes(test: str, nodes: Sequence[Node | None]) -> Node:
    present = [node for node in nodes if node is not None]
    first = present[0]
    if len(present) == len(nodes) and all(isinstance(node, Tree) for node in present):
        trees = [node for node in present if isinstance(node, Tree)]
        keys = dict.fromkeys(key for tree in trees for key in tree.items)
        items = {key: _join_nodes(test, [tree.items.get(key) for tree in trees]) for key in keys}
        unread = list(dict.fromkeys(entry for tree in trees for entry in tree.unread))
        return Tree(first.place, items, unread)
    texts = list(dict.fromkeys("absent" if node is None else _text(node) for node in nodes))
    if len(texts) == 1:
        return first
    if len(present) < len(nodes) and isinstance(first, Tree) and len(present) == 1:
        return first  # a dictionary that only one branch makes: its keys are still worth naming
    return Leaf(Computed(f"{' or '.join(texts)}, by `{test}`"), first.place)


def _text(node: Node) -> str:
    if isinstance(node, Leaf):
        return node.value.text if isinstance(node.value, Computed) else repr(node.value)
    return "{" + ", ".join(f"{key!r}: {_text(value)}" for key, value in node.items.items()) + "}"
