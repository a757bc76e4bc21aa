"""Flags that are read and have no effect: all they set is a key that nothing reads, or only a copy's.

When in doubt, a flag has an effect.
"""

import ast
from collections.abc import Sequence
from dataclasses import replace

from amt_hydra.repository.copies import Copies
from amt_hydra.repository.effects import Effects, OtherEffectError, Sink, reads_of
from amt_hydra.repository.facts import Flag
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.keys import Keys
from amt_hydra.repository.spread import Spreads, goes_out
from amt_hydra.repository.units import Unit


def mark_lost(flow: Flow, flags: Sequence[Flag]) -> tuple[Flag, ...]:
    """Say of each flag why it has no effect, where that is certain."""
    reads, spreads, keys, copies = reads_of(flow), Spreads(flow), Keys(flow), Copies(flow)
    found = []
    for flag in flags:
        nodes = reads.get(flag.dest, [])
        places = {flow.trace.place(unit, node) for node, unit in nodes}
        sinks = _sinks(flow, nodes) if flag.reads and places == set(flag.reads) else ()
        found.append(replace(flag, lost=_unread(flow, spreads, keys, sinks) or copies.why(sinks)) if sinks else flag)
    return tuple(found)


def _sinks(flow: Flow, nodes: list[tuple[ast.expr, Unit]]) -> tuple[Sink, ...]:
    effects = Effects(flow)
    try:
        for node, unit in nodes:
            effects.read(node, unit)
    except OtherEffectError:
        return ()
    return tuple(effects.sinks)


def _unread(flow: Flow, spreads: Spreads, keys: Keys, sinks: tuple[Sink, ...]) -> str:
    """Say which key nothing reads, where that is all that a flag sets."""
    if any(spreads.hold(sink) or keys.is_read(str(sink.keys[-1])) for sink in sinks):
        return ""
    if any(goes_out(sink, flow) for sink in sinks):
        return ""
    words = [
        f"{'.'.join(key or '*' for key in sink.keys)} of {ast.unparse(sink.root)} "
        f"at {flow.trace.sources.place(sink.place.file, sink.place.line)}"
        for sink in sinks
    ]
    return f"sets {' and '.join(dict.fromkeys(words))}, which nothing reads"
