"""Reads the facts out of the objects that a pickle describes: what Lightning writes, or a plain state_dict."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from amt_hydra.checkpoint.archive import Archive
from amt_hydra.checkpoint.facts import Monitor, TensorFact, Xray
from amt_hydra.checkpoint.inert import Inert, Tensor
from amt_hydra.checkpoint.limits import MAX_NODES
from amt_hydra.checkpoint.machine import Machine
from amt_hydra.checkpoint.values import Values

Dict = Mapping[object, object]

# Under which key a checkpoint that is not a bare state_dict keeps it; Lightning's comes first.
_STATE_DICTS = ("state_dict", "model_state_dict", "model")

_EMPTY: Dict = {}
_MAX_MONITORS = 1_000
_MAX_NAME = 250  # characters of a tensor's name that is put together from those of modules


def read(xray: Xray, root: object, machine: Machine, archive: Archive) -> Xray:
    """Return `xray` as a whole checkpoint, with all that its object graph tells."""
    values = Values(archive)
    top = _dict(root)
    return replace(
        xray,
        whole=True,
        global_step=_integer(top.get("global_step")),
        epoch=_integer(top.get("epoch")),
        lightning_version=_text(top.get("pytorch-lightning_version")),
        optimizer_groups=tuple(_groups(state, values) for state in values.each(top.get("optimizer_states"))),
        schedulers=tuple(values.mapping(_dict(state)) for state in values.each(top.get("lr_schedulers"))),
        monitors=tuple(islice(_monitors(_dict(top.get("callbacks")), values), _MAX_MONITORS)),
        hyper_parameters=_hyper_parameters(top.get("hyper_parameters"), values),
        tensors=_tensors(root, top),
        refused_globals=machine.refused(),
        refused_opcodes=tuple(sorted(machine.opcodes)),
    )


def _dict(value: object) -> Dict:
    if isinstance(value, Inert):  # a subclass of dict
        value = value.items
    return value if isinstance(value, dict) else _EMPTY


def _integer(value: object) -> int | None:
    return value if type(value) is int else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _groups(state: object, values: Values) -> tuple[dict[str, object], ...]:
    """Return the parameter groups of one optimizer without the numbers of their parameters."""
    groups = values.each(_dict(state).get("param_groups"))
    return tuple(values.mapping(_dict(group), without="params") for group in groups)


def _monitors(callbacks: Dict, values: Values) -> Iterator[Monitor]:
    """A ModelCheckpoint is known by what its state holds: the key names whatever the subclass is called."""
    for callback in callbacks.values():
        state = _dict(callback)
        if "best_model_path" in state and "current_score" in state:
            yield Monitor(
                monitor=_text(state.get("monitor")),
                best_path=_text(state.get("best_model_path")) or None,
                best_score=_score(state.get("best_model_score"), values),
                current_score=_score(state.get("current_score"), values),
            )


def _score(value: object, values: Values) -> float | None:
    number = values.number(value)
    return None if number is None else float(number)


def _hyper_parameters(value: object, values: Values) -> dict[str, object]:
    plain = values.plain(value)
    return plain if isinstance(plain, dict) else {}


def _tensors(root: object, top: Dict) -> tuple[TensorFact, ...]:
    """List the tensors of the model: its state_dict under a known key, a bare one, or those of a pickled module."""
    if isinstance(root, Tensor):
        return (TensorFact("", root.shape, root.dtype),)
    for key in _STATE_DICTS:
        value = top.get(key)
        found = _of_state_dict(_dict(value)) or tuple(_of_module(value))
        if found:
            return found
    return _of_state_dict(top) or tuple(_of_module(root))


def _of_state_dict(state: Dict) -> tuple[TensorFact, ...]:
    named = ((name, item) for name, item in state.items() if isinstance(name, str) and isinstance(item, Tensor))
    return tuple(TensorFact(name, tensor.shape, tensor.dtype) for name, tensor in named)


def _of_module(root: object) -> Iterator[TensorFact]:
    """Walk a pickled torch.nn.Module, which keeps its tensors in _parameters, _buffers and _modules."""
    waiting = [(root, "")]
    left = MAX_NODES  # modules may share children, and a hostile file makes of that an exponential number
    while waiting:
        module, prefix = waiting.pop()
        state = _dict(module.state if isinstance(module, Inert) else None)
        parameters, buffers, modules = (_dict(state.get(kind)) for kind in ("_parameters", "_buffers", "_modules"))
        left -= 1 + len(parameters) + len(buffers) + len(modules)
        if left < 0:
            return
        for found in (*_of_state_dict(parameters), *_of_state_dict(buffers)):
            yield TensorFact(f"{prefix}{found.name[:_MAX_NAME]}", found.shape, found.dtype)
        named = ((f"{prefix}{name}.", child) for name, child in modules.items() if isinstance(name, str))
        waiting.extend((child, name) for name, child in named if len(name) <= _MAX_NAME)
