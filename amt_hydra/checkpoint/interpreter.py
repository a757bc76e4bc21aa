"""Runs a pickle's opcodes over inert records: the loop, with the opcodes that torch.save writes most done in place.

A checkpoint of five hundred parameters with its optimizer runs some 60 000 opcodes; doing the frequent ones here rather
than through the table of `opcodes` more than halves the time. A test holds the two to the same result.
"""

import gc
import struct
from itertools import repeat

from amt_hydra.checkpoint.inert import call
from amt_hydra.checkpoint.limits import MAX_STEPS, UnreadableError
from amt_hydra.checkpoint.machine import Machine
from amt_hydra.checkpoint.opcodes import TABLE

_uint32 = struct.Struct("<I").unpack_from
_uint16 = struct.Struct("<H").unpack_from

_MALFORMED = (LookupError, ValueError, TypeError, EOFError, OverflowError, struct.error)


def run(data: bytearray) -> tuple[object, Machine]:
    """Return the root of the objects of the pickle `data`, and the machine that built them.

    Raises UnreadableError where the pickle does not read to its end or exceeds a limit.
    """
    machine = Machine(data)
    collecting = gc.isenabled()
    gc.disable()  # the records all stay alive until the end: collections would find nothing, and take half the time
    try:
        return _loop(machine), machine
    except _MALFORMED as error:
        raise UnreadableError("damaged: its pickle does not read to its end") from error
    finally:
        if collecting:
            gc.enable()


def _loop(m: Machine) -> object:  # noqa: PLR0912, PLR0915 - one branch per frequent opcode, the most frequent first
    data, memo, stack, marks = m.data, m.memo, m.stack, m.marks
    push, pop = stack.append, stack.pop
    at, size = 0, len(data)
    for _ in repeat(None, MAX_STEPS):
        code = data[at]
        at += 1
        if code == 0x72:  # LONG_BINPUT
            memo[_uint32(data, at)[0]] = stack[-1]
            at += 4
        elif code == 0x68:  # BINGET
            push(memo[data[at]])
            at += 1
        elif code == 0x4B:  # BININT1
            push(data[at])
            at += 1
        elif code == 0x28:  # MARK
            marks.append(len(stack))
        elif code == 0x52:  # REDUCE
            arguments = pop()
            stack[-1] = call(stack[-1], arguments)
        elif code == 0x74:  # TUPLE
            start = marks.pop()
            stack[start:] = [tuple(stack[start:])]
        elif code == 0x29:  # EMPTY_TUPLE
            push(())
        elif code == 0x58 and (end := at + 4 + _uint32(data, at)[0]) <= min(size, at + 260):  # BINUNICODE, short
            push(str(data[at + 4 : end], "utf-8", "surrogatepass"))
            m.text -= end - at  # the sum is checked where a longer text is read; short ones alone stay under MAX_PICKLE
            at = end
        elif code == 0x89:  # NEWFALSE
            push(False)
        elif code == 0x51:  # BINPERSID
            stack[-1] = m.persistent(stack[-1])
        elif code == 0x85:  # TUPLE1
            stack[-1] = (stack[-1],)
        elif code == 0x6A:  # LONG_BINGET
            push(memo[_uint32(data, at)[0]])
            at += 4
        elif code == 0x86:  # TUPLE2
            last = pop()
            stack[-1] = (stack[-1], last)
        elif code == 0x4D:  # BININT2
            push(_uint16(data, at)[0])
            at += 2
        elif code == 0x7D:  # EMPTY_DICT
            push({})
        elif code == 0x75:  # SETITEMS
            start = marks.pop()
            pairs = stack[start:]
            del stack[start:]
            m.put(pairs)
        elif code == 0x2E:  # STOP
            return pop()
        else:
            m.at = at
            TABLE[code](m)
            at = m.at
    raise UnreadableError(f"refused: its pickle runs more than {MAX_STEPS} opcodes, far beyond what torch.save writes")
