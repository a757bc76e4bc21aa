"""The values of config.py: every leaf of its module-level dictionaries under a dotted key."""

from collections.abc import Iterator

from amt_hydra.repository.facts import ConfigValue, Place
from amt_hydra.repository.namespace import Namespace
from amt_hydra.repository.nodes import Leaf, Node


def config_values(namespace: Namespace) -> dict[str, ConfigValue]:
    """Return the leaves of what config.py binds or imports from its own repository, each under its dotted key."""
    return {
        key: ConfigValue(key, leaf.value, leaf.place)
        for name, node in _tops(namespace)
        for key, leaf in _leaves(name, node)
    }


def unread_config(namespace: Namespace) -> list[tuple[Place, str]]:
    """Return the place and text of whatever may put keys into config.py that cannot be named."""
    return [entry for _, node in _tops(namespace) for entry in _unread(node)]


def _tops(namespace: Namespace) -> Iterator[tuple[str, Node]]:
    for name in (*namespace.names, *sorted(namespace.imported() - set(namespace.names))):
        node = namespace.find(name)
        if node is not None and not name.startswith("__"):
            yield name, node


def _leaves(key: str, node: Node) -> Iterator[tuple[str, Leaf]]:
    if isinstance(node, Leaf):
        yield key, node
    elif not node.items:
        yield key, Leaf({}, node.place)
    else:
        for part, child in node.items.items():
            yield from _leaves(f"{key}.{part}", child)


def _unread(node: Node) -> Iterator[tuple[Place, str]]:
    if not isinstance(node, Leaf):
        yield from node.unread
        for child in node.items.values():
            yield from _unread(child)
