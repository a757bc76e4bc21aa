"""The transcription tasks: the keys of task.py's task_cfg, and how many channels each decodes."""

from amt_hydra.repository.facts import Task
from amt_hydra.repository.namespace import Namespace
from amt_hydra.repository.nodes import Leaf, Node, Tree

TABLE = "task_cfg"
_CHANNELS = "num_decoding_channels"


def find_tasks(namespace: Namespace) -> dict[str, Task]:
    """Return every task."""
    table = namespace.find(TABLE)
    if not isinstance(table, Tree):
        return {}
    return {key: Task(node.place, _channels(node)) for key, node in table.items.items() if isinstance(key, str)}


def _channels(node: Node) -> int | None:
    if isinstance(node, Leaf) or (node.unread and _CHANNELS not in node.items):
        return None
    given = node.items.get(_CHANNELS)
    if given is None:
        return 1
    value = given.value if isinstance(given, Leaf) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
