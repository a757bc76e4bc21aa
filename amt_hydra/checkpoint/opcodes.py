"""The opcodes of a pickle, protocols 0 to 5, as what each does to the machine.

Why not a `pickle.Unpickler` with a harmless find_class: its C code hashes whatever is a dict key (deep tuples overflow
the C stack), makes room for a memo as large as the file says (tens of GiB for one opcode), and calls methods of what
it built. Here a key that is not a plain value is wrapped, the memo is a dict, long texts are cut, huge integers are
skipped, nothing recurses, and opcodes are counted. All opcodes of protocols 0 to 5 are known, but for the out-of-band
buffers, which torch never writes.
"""

import struct
from collections.abc import Callable

from amt_hydra.checkpoint.inert import Global, Inert, call
from amt_hydra.checkpoint.machine import Machine
from amt_hydra.checkpoint.weights_only import ALLOWED_OPCODES

Opcode = Callable[[Machine], None]

PLAIN_INT = 8  # bytes: a longer integer is no value that a user set, and costs quadratic time to print
BYTES = Global("builtins.bytes")
SET = Global("builtins.set")
FROZENSET = Global("builtins.frozenset")
BIG_INT = Global("builtins.int")


def _push(value: Callable[[Machine], object]) -> Opcode:
    def opcode(m: Machine) -> None:
        m.stack.append(value(m))

    return opcode


def _gather(value: Callable[[list[object]], object]) -> Opcode:
    """An opcode that puts what `value` makes of the items above the mark in their place."""

    def opcode(m: Machine) -> None:
        m.stack.append(value(m.since_mark()))

    return opcode


def _skipped(m: Machine, size: int) -> Inert:
    m.skip(size)
    return Inert(BYTES, None)


def _long(m: Machine, size: int) -> object:
    if size <= PLAIN_INT:
        return int.from_bytes(m.take(size), "little", signed=True)
    m.skip(size)
    return Inert(BIG_INT, None)


def _decimal(m: Machine) -> object:
    text = m.line()
    if text in ("00", "01"):  # how protocol 0 spells the booleans
        return text == "01"
    return int(text.rstrip("L")) if len(text) < 20 else Inert(BIG_INT, None)


def _paired(items: list[object]) -> dict[object, object]:
    return {Machine.key(items[at]): items[at + 1] for at in range(0, len(items), 2)}


def _mark(m: Machine) -> None:
    m.marks.append(len(m.stack))


def _pop(m: Machine) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.stack.pop()


def _memoize(m: Machine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _binput(m: Machine) -> None:
    m.memo[m.number(1)] = m.stack[-1]


def _long_binput(m: Machine) -> None:
    m.memo[m.number(4)] = m.stack[-1]


def _put(m: Machine) -> None:
    m.memo[int(m.line())] = m.stack[-1]


def _setitem(m: Machine) -> None:
    pair = m.stack[-2:]
    del m.stack[-2:]
    m.put(pair)


def _global(m: Machine) -> None:
    m.stack.append(m.name(m.line(), m.line(), old=True))


def _stack_global(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError
    m.stack.append(m.name(module, name, old=False))


def _inst(m: Machine) -> None:
    maker = m.name(m.line(), m.line(), old=True)
    m.stack.append(call(maker, tuple(m.since_mark())))


def _obj(m: Machine) -> None:
    maker, *arguments = m.since_mark()
    m.stack.append(call(maker, tuple(arguments)))


def _newobj_ex(m: Machine) -> None:
    m.stack.pop()  # the keyword arguments
    m.reduce(m.stack.pop())


def _extension(size: int) -> Opcode:
    """EXT1, EXT2, EXT4: a number of the copyreg registry, which is not consulted."""
    return _push(lambda m: m.name("copyreg", f"extension_{m.number(size)}", old=False))


def _tuple(size: int) -> Opcode:
    def opcode(m: Machine) -> None:
        items = tuple(m.stack[-size:])
        if len(items) != size:
            raise IndexError
        m.stack[-size:] = [items]

    return opcode


_CODES: dict[str, tuple[bytes, Opcode]] = {
    "PROTO": (b"\x80", lambda m: m.skip(1)),
    "FRAME": (b"\x95", lambda m: m.skip(8)),  # the length of a frame is a hint for buffering
    "MARK": (b"(", _mark),
    "POP": (b"0", _pop),
    "POP_MARK": (b"1", lambda m: m.since_mark().clear()),
    "DUP": (b"2", _push(lambda m: m.stack[-1])),
    "NONE": (b"N", _push(lambda _: None)),
    "NEWTRUE": (b"\x88", _push(lambda _: True)),
    "NEWFALSE": (b"\x89", _push(lambda _: False)),
    "INT": (b"I", _push(_decimal)),
    "LONG": (b"L", _push(_decimal)),
    "BININT": (b"J", _push(lambda m: int.from_bytes(m.take(4), "little", signed=True))),
    "BININT1": (b"K", _push(lambda m: m.number(1))),
    "BININT2": (b"M", _push(lambda m: m.number(2))),
    "LONG1": (b"\x8a", _push(lambda m: _long(m, m.number(1)))),
    "LONG4": (b"\x8b", _push(lambda m: _long(m, m.number(4)))),
    "FLOAT": (b"F", _push(lambda m: float(m.line()[:64]))),
    "BINFLOAT": (b"G", _push(lambda m: struct.unpack(">d", m.take(8))[0])),
    "STRING": (b"S", _push(lambda m: m.line()[1:-1])),
    "BINSTRING": (b"T", _push(lambda m: m.string(m.number(4)))),
    "SHORT_BINSTRING": (b"U", _push(lambda m: m.string(m.number(1)))),
    "UNICODE": (b"V", _push(lambda m: m.line("raw-unicode-escape"))),
    "BINUNICODE": (b"X", _push(lambda m: m.string(m.number(4)))),
    "SHORT_BINUNICODE": (b"\x8c", _push(lambda m: m.string(m.number(1)))),
    "BINUNICODE8": (b"\x8d", _push(lambda m: m.string(m.number(8)))),
    "BINBYTES": (b"B", _push(lambda m: _skipped(m, m.number(4)))),
    "SHORT_BINBYTES": (b"C", _push(lambda m: _skipped(m, m.number(1)))),
    "BINBYTES8": (b"\x8e", _push(lambda m: _skipped(m, m.number(8)))),
    "BYTEARRAY8": (b"\x96", _push(lambda m: _skipped(m, m.number(8)))),
    "EMPTY_TUPLE": (b")", _push(lambda _: ())),
    "EMPTY_LIST": (b"]", _push(lambda _: [])),
    "EMPTY_DICT": (b"}", _push(lambda _: {})),
    "EMPTY_SET": (b"\x8f", _push(lambda _: Inert(SET, None))),
    "TUPLE": (b"t", _gather(tuple)),
    "LIST": (b"l", _gather(lambda items: items)),
    "DICT": (b"d", _gather(_paired)),
    "FROZENSET": (b"\x91", _gather(lambda _: Inert(FROZENSET, None))),
    "TUPLE1": (b"\x85", _tuple(1)),
    "TUPLE2": (b"\x86", _tuple(2)),
    "TUPLE3": (b"\x87", _tuple(3)),
    "APPEND": (b"a", lambda m: m.extend([m.stack.pop()])),
    "APPENDS": (b"e", lambda m: m.extend(m.since_mark())),
    "ADDITEMS": (b"\x90", lambda m: m.extend(m.since_mark())),
    "SETITEM": (b"s", _setitem),
    "SETITEMS": (b"u", lambda m: m.put(m.since_mark())),
    "GET": (b"g", _push(lambda m: m.memo[int(m.line())])),
    "BINGET": (b"h", _push(lambda m: m.memo[m.number(1)])),
    "LONG_BINGET": (b"j", _push(lambda m: m.memo[m.number(4)])),
    "PUT": (b"p", _put),
    "BINPUT": (b"q", _binput),
    "LONG_BINPUT": (b"r", _long_binput),
    "MEMOIZE": (b"\x94", _memoize),
    "GLOBAL": (b"c", _global),
    "STACK_GLOBAL": (b"\x93", _stack_global),
    "INST": (b"i", _inst),
    "OBJ": (b"o", _obj),
    "EXT1": (b"\x82", _extension(1)),
    "EXT2": (b"\x83", _extension(2)),
    "EXT4": (b"\x84", _extension(4)),
    "REDUCE": (b"R", lambda m: m.reduce(m.stack.pop())),
    "NEWOBJ": (b"\x81", lambda m: m.reduce(m.stack.pop())),
    "NEWOBJ_EX": (b"\x92", _newobj_ex),
    "BUILD": (b"b", lambda m: m.build()),
    "PERSID": (b"P", _push(lambda m: m.persistent(m.line()))),
    "BINPERSID": (b"Q", _push(lambda m: m.persistent(m.stack.pop()))),
}


def _noting(name: str, opcode: Opcode) -> Opcode:
    """An opcode that torch's weights_only unpickler does not know, and that says so."""

    def noted(m: Machine) -> None:
        m.opcodes.add(name)
        opcode(m)

    return noted


TABLE: dict[int, Opcode] = {
    code[0]: opcode if name in ALLOWED_OPCODES else _noting(name, opcode) for name, (code, opcode) in _CODES.items()
}
"""By opcode byte; STOP is not among them, since it ends the loop that uses this table."""
