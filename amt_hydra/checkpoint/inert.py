"""What a pickle's opcodes build here in place of objects: records of names and arguments, with no behaviour.

Nothing is looked up, imported or called by a name from the file. The few functions known below
(`torch._utils._rebuild_*` and friends) are known by their spelling, and stand for a description of the tensor that they
would have built.
"""

from collections.abc import Callable

Args = tuple[object, ...]

MAX_RANK = 64  # torch's own limit for a shape


class Global:
    """A class or function named in the pickle, as "module.name"."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Inert:
    """What calling a global would have built: who, with what, the state set on it, the items put in it."""

    __slots__ = ("args", "items", "maker", "state")

    def __init__(self, maker: object, args: object) -> None:
        self.maker = maker
        self.args = args
        self.state: object = None
        self.items: dict[object, object] | None = None  # made when needed: a hostile file makes a million of these


class Storage:
    """The bytes of one or several tensors: member `data/<key>` of the archive."""

    __slots__ = ("dtype", "key", "numel")

    def __init__(self, dtype: str, key: str, numel: int) -> None:
        self.dtype = dtype
        self.key = key
        self.numel = numel


class Tensor:
    """Shape and dtype of a tensor, and where its first element lies (None where that is not a plain storage)."""

    __slots__ = ("dtype", "offset", "shape", "storage")

    def __init__(self, dtype: str, shape: tuple[int, ...], storage: Storage | None = None, offset: int = 0) -> None:
        self.dtype = dtype
        self.shape = shape
        self.storage = storage
        self.offset = offset


_DTYPES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "QUInt8": "quint8",
    "QInt8": "qint8",
    "QInt32": "qint32",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
}
# Class of a storage -> its dtype; what is not among them, UntypedStorage above all, counts bytes.
_STORAGES = {f"torch.{at}{name}Storage": dtype for name, dtype in _DTYPES.items() for at in ("", "cuda.")}


def storage(pid: object) -> object:
    """Return the Storage that torch's persistent id ('storage', type, key, location, numel) names, else an Inert."""
    if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] in ("storage", b"storage")):
        return Inert(None, pid)
    _, kind, key, _, numel = pid
    if not (isinstance(kind, Global) and isinstance(key, str) and isinstance(numel, int) and 0 <= numel < 1 << 62):
        return Inert(None, pid)
    return Storage(_STORAGES.get(kind.path, "uint8"), key, numel)


def call(function: object, args: object) -> object:
    """Return what stands for function(*args): a Tensor or container where the function is known, else an Inert."""
    if isinstance(function, Global) and isinstance(args, tuple):
        known = _KNOWN.get(function.path)
        built = known(args) if known is not None else None
        if built is not None:
            return built
    return Inert(function, args)


def _shape(value: object) -> tuple[int, ...] | None:
    if isinstance(value, Inert) and isinstance(value.args, tuple) and len(value.args) == 1:
        value = value.args[0]  # torch.Size((…))
    if not isinstance(value, tuple) or len(value) > MAX_RANK:
        return None
    for n in value:
        if type(n) is not int or not 0 <= n < 1 << 62:
            return None
    return value


def _dtype(value: object) -> str | None:
    # Longer than any dtype: made to be copied a million times.
    return value.path.removeprefix("torch.") if isinstance(value, Global) and len(value.path) < 48 else None


def _dense(args: Args) -> Tensor | None:
    """_rebuild_tensor, _rebuild_tensor_v2, _rebuild_qtensor: (storage, storage_offset, size, stride, …)."""
    if len(args) < 4 or not isinstance(args[0], Storage) or not isinstance(args[1], int):
        return None
    shape = _shape(args[2])
    return None if shape is None else Tensor(args[0].dtype, shape, args[0], args[1])


def _typed(args: Args) -> Tensor | None:
    """_rebuild_tensor_v3: (untyped storage, storage_offset, size, stride, requires_grad, hooks, dtype, …)."""
    found = _dense(args)
    dtype = _dtype(args[6]) if len(args) > 6 else None
    if found is None or dtype is None:
        return None
    return Tensor(dtype, found.shape, found.storage, found.offset)


def _first(args: Args) -> Tensor | None:
    """_rebuild_parameter and others that wrap the tensor given first."""
    return args[0] if args and isinstance(args[0], Tensor) else None


def _sparse(args: Args) -> Tensor | None:
    """_rebuild_sparse_tensor: (layout, (…, values, size, …)); which comes where depends on the layout."""
    parts = args[1] if len(args) > 1 else None
    if not isinstance(parts, tuple) or len(parts) > 8:
        return None
    tensors = [part for part in parts if isinstance(part, Tensor)]
    shapes = [shape for part in parts if (shape := _shape(part)) is not None]
    # The values are the last tensor in each layout, the size the only tuple of numbers.
    return Tensor(tensors[-1].dtype, shapes[-1]) if tensors and shapes else None


def _meta(args: Args) -> Tensor | None:
    """_rebuild_meta_tensor_no_storage: (dtype, size, stride, requires_grad)."""
    return _described(args, 0)


def _wrapper(args: Args) -> Tensor | None:
    """_rebuild_wrapper_subclass: (class, dtype, size, stride, …)."""
    return _described(args, 1)


def _described(args: Args, at: int) -> Tensor | None:
    if len(args) < at + 2:
        return None
    dtype, shape = _dtype(args[at]), _shape(args[at + 1])
    return None if dtype is None or shape is None else Tensor(dtype, shape)


def _subclass(args: Args) -> object:
    """_rebuild_from_type_v2: (function, type, its arguments, state): a tensor subclass or one with attributes."""
    if (
        len(args) < 3
        or not isinstance(args[0], Global)
        or args[0].path not in _TENSORS
        or not isinstance(args[2], tuple)
    ):
        return None
    return _TENSORS[args[0].path](args[2])


def _empty_dict(args: Args) -> object:
    # Items follow by SETITEMS. A list given as argument is not copied: the same one may be given a million times.
    return {} if not args or isinstance(args[0], Global) else None


def _itself(args: Args) -> object:
    """Counter({…}): the same dict serves, uncopied."""
    return args[0] if args and isinstance(args[0], dict) else None


_TENSORS: dict[str, Callable[[Args], Tensor | None]] = {
    "torch._utils._rebuild_tensor": _dense,
    "torch._utils._rebuild_tensor_v2": _dense,
    "torch._utils._rebuild_tensor_v3": _typed,
    "torch._utils._rebuild_qtensor": _dense,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _first,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
}
_KNOWN: dict[str, Callable[[Args], object]] = {
    **_TENSORS,
    "torch._tensor._rebuild_from_type_v2": _subclass,
    "collections.OrderedDict": _empty_dict,
    "collections.defaultdict": _empty_dict,
    "builtins.dict": _empty_dict,
    "collections.Counter": _itself,
}
