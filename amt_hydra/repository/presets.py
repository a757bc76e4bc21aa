"""The names of the data presets: the keys of the dictionaries in data_presets.py."""

from amt_hydra.repository.facts import Computed, Place
from amt_hydra.repository.namespace import Namespace
from amt_hydra.repository.nodes import Leaf, Tree

PRESET_MARK = b"data_preset"
"""What an imported table's name holds. Only modules that say so are followed: vocabularies are long, and no presets."""


def preset_names(namespace: Namespace) -> dict[str, Place]:
    """Return every preset with its place. A later dictionary does not move a name that an earlier one has."""
    found: dict[str, Place] = {}
    for tree in tables(namespace).values():
        for key, node in tree.items.items():
            if isinstance(key, str):
                found.setdefault(key, node.place)
    return found


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
