"""What torch.load(weights_only=True) accepts by default, as data.

Source: `_get_allowed_globals` and the opcode loop of `torch/_weights_only_unpickler.py`, torch 2.13. Older releases
accept a little less (torch 2.6 has no float8_e8m0fnu); what they refuse of an ordinary checkpoint is the same. A test
holds the tables against the installed torch.
"""

_DTYPES = (
    "bfloat16 bits16 bits1x8 bits2x4 bits4x2 bits8 bool complex128 complex32 complex64 float16 float32 "
    "float4_e2m1fn_x2 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int16 "
    "int2 int3 int32 int4 int5 int6 int64 int7 int8 qint32 qint8 quint2x4 quint4x2 quint8 uint1 uint16 uint2 "
    "uint3 uint32 uint4 uint5 uint6 uint64 uint7 uint8"
)
_SCHEMES = (
    "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric"
)
_REAL = "BFloat16 Byte Char Double Float Half Int Long Short"  # the kinds that have a sparse class too
_DENSE = f"{_REAL} Bool"
_STORED = f"{_DENSE} ComplexDouble ComplexFloat"
_QUANTIZED = "QInt32 QInt8 QUInt2x4 QUInt4x2 QUInt8"
_REBUILD = (
    "device_tensor_from_cpu_tensor device_tensor_from_numpy meta_tensor_no_storage nested_tensor parameter "
    "parameter_with_state qtensor sparse_tensor tensor tensor_v2 tensor_v3 wrapper_subclass"
)
_OTHERS = (
    "_codecs.encode builtins.bytearray builtins.complex builtins.set collections.Counter collections.OrderedDict "
    "torch.Size torch.Tensor torch._tensor._rebuild_from_type_v2 torch.device torch.nn.parameter.Parameter "
    "torch.serialization._get_layout torch.storage.TypedStorage torch.storage.UntypedStorage"
)


def _spelled(pattern: str, names: str) -> set[str]:
    return {pattern.format(name) for name in names.split()}


ALLOWED_GLOBALS: frozenset[str] = frozenset(
    _spelled("{}", _OTHERS)
    | _spelled("torch.{}", f"{_DTYPES} {_SCHEMES}")
    | _spelled("torch._utils._rebuild_{}", _REBUILD)
    | _spelled("torch.{}Storage", f"{_STORED} {_QUANTIZED}")
    | _spelled("torch.cuda.{}Storage", _STORED)
    | _spelled("torch.{}Tensor", _DENSE)
    | _spelled("torch.cuda.{}Tensor", _DENSE)
    | _spelled("torch.sparse.{}Tensor", _REAL)
    | _spelled("torch.cuda.sparse.{}Tensor", _REAL)
)

_OPCODES = (
    "APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPERSID BINPUT BINUNICODE BUILD EMPTY_DICT "
    "EMPTY_LIST EMPTY_SET EMPTY_TUPLE GLOBAL LONG1 LONG_BINGET LONG_BINPUT MARK NEWFALSE NEWOBJ NEWTRUE NONE "
    "PROTO REDUCE SETITEM SETITEMS SHORT_BINSTRING STOP TUPLE TUPLE1 TUPLE2 TUPLE3"
)

ALLOWED_OPCODES: frozenset[str] = frozenset(_OPCODES.split())
"""The opcodes of pickle protocol 2 that torch.save writes; a pickle_protocol=4 is refused for its opcodes alone."""
