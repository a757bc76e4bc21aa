"""A warm-start: the weights of a checkpoint, by name and shape, and a count of what matched."""

from __future__ import annotations

from typing import Any

from .session import Session

_SHOWN = 5
_PREFIXES = ("model.", "module.", "_orig_mod.", "net.")


def names(model: Any) -> Any:
    """Return the names of a model's tensors as they are before setup() makes more of them."""
    return set(getattr(model, "_orig_mod", model).state_dict())  # fit() unwraps what torch.compile has wrapped


def load(session: Session, trainer: Any, model: Any, before: Any) -> None:
    """Load the plan's checkpoint into the model; refuse where nothing, or too little, matches."""
    arguments = session.arguments("warmstart")
    if getattr(trainer.strategy, "restore_checkpoint_after_setup", False):
        session.refuse("a warm-start is not brought to %s, which shards the model" % type(trainer.strategy).__name__)
    theirs, ours = _read(arguments), model.state_dict()
    report = compare(theirs, ours, before)
    session.report("warmstart", ckpt=arguments["ckpt"], **report)
    session.say("warmstart from %s: %s" % (arguments["ckpt"], in_words(report)))
    matched = report["matched"]["names"]
    if not matched:
        session.refuse("no tensor of %s fits the model%s" % (arguments["ckpt"], _hint(theirs, ours)))
    if report["coverage"] < arguments["min_coverage"]:
        session.refuse(
            "%s covers %.4f of the model's elements, and init.min_coverage is %s: %s"
            % (arguments["ckpt"], report["coverage"], arguments["min_coverage"], in_words(report))
        )
    model.load_state_dict({name: theirs[name] for name in matched}, strict=False)
    session.done("warmstart", "%d of %d tensors" % (len(matched), len(ours)))


def _read(arguments: Any) -> Any:
    """Return the tensors of the checkpoint's model."""
    import torch

    content = torch.load(arguments["ckpt"], map_location="cpu", weights_only=not arguments["pickled"])
    state = content.get("state_dict", content) if isinstance(content, dict) else {}
    return {name: tensor for name, tensor in state.items() if isinstance(tensor, torch.Tensor)}


def compare(theirs: Any, ours: Any, before: Any) -> Any:
    """Return what matches, by tensors and elements. `before`: names that were there before setup()."""
    tensors = {name: value for name, value in ours.items() if hasattr(value, "shape")}
    matched = [n for n in tensors if n in theirs and theirs[n].shape == tensors[n].shape]
    mismatched = [n for n in tensors if n in theirs and theirs[n].shape != tensors[n].shape]
    missing = [n for n in tensors if n not in theirs and n in before]
    late = [n for n in tensors if n not in theirs and n not in before]
    unexpected = [n for n in theirs if n not in tensors]
    whole = sum(tensors[n].numel() for n in tensors if n not in late)
    elements = sum(tensors[n].numel() for n in matched)
    return {
        "matched": {"tensors": len(matched), "elements": elements, "names": matched},
        "missing": _counted(missing, tensors),
        "unexpected": _counted(unexpected, theirs),
        "mismatched": _counted(mismatched, tensors),
        "made_in_setup": _counted(late, tensors),
        "coverage": elements / whole if whole else 0.0,
    }


def _counted(found: Any, tensors: Any) -> Any:
    return {"tensors": len(found), "elements": sum(tensors[n].numel() for n in found), "names": found}


def in_words(report: Any) -> Any:
    """Return the report in one line."""
    parts = ["coverage %.4f" % report["coverage"]]
    for kind in ("matched", "missing", "unexpected", "mismatched", "made_in_setup"):
        entry = report[kind]
        text = "%s %d tensors (%d elements)" % (kind.replace("_", " "), entry["tensors"], entry["elements"])
        if kind != "matched" and entry["names"]:
            more = ", …" if entry["tensors"] > _SHOWN else ""
            text += " [%s%s]" % (", ".join(entry["names"][:_SHOWN]), more)
        if entry["tensors"] or kind == "matched":
            parts.append(text)
    return "; ".join(parts)


def _hint(theirs: Any, ours: Any) -> Any:
    """Return what would match with a prefix less on either side."""
    for prefix in _PREFIXES:
        for side, here, there in (("checkpoint", theirs, ours), ("model", ours, theirs)):
            stripped = {n[len(prefix) :] for n in here if n.startswith(prefix)}
            if stripped & set(there):
                return "; %d names would, were %r taken from the %s's names" % (
                    len(stripped & set(there)),
                    prefix,
                    side,
                )
    return ""
