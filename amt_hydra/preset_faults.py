"""What is wrong with a data preset, as the family's data modules would find out after the start. Pure."""

from collections.abc import Mapping

from amt_hydra.errors import nearest
from amt_hydra.repository.facts import Preset


def preset_faults(
    preset: Preset, name: str, presets: Mapping[str, Preset], *, counts_vocabulary: bool = True
) -> list[tuple[str, str]]:
    """What keeps a preset from being trained on, in words that follow its name, and the line to edit."""
    members = preset.members if preset.members is not None else (name,)
    single = [key for key, entry in presets.items() if entry.members is None]
    found = []
    for missing in dict.fromkeys(m for m in members if m not in single):
        close = nearest(missing, single)
        way = f"write {close} for {missing} at {preset.place}" if close else ""
        what = f"a preset of several itself (at {presets[missing].place})" if missing in presets else "not there"
        found.append((f"names {missing}, which is {what}", way))
    for lacking in dict.fromkeys(m for m in members if m in single and "train_split" in presets[m].lacks):
        part = "" if lacking == name else f"names {lacking} ({presets[lacking].place}), which "
        found.append((f"{part}has no train split", ""))
    validated = [m for m in members if m in single and "validation_split" not in presets[m].lacks]
    short = preset.vocabularies is not None and preset.vocabularies < len(validated)
    if preset.members is not None and short and counts_vocabulary and not found:
        text = f"has {preset.vocabularies} entries in eval_vocab for {len(validated)} presets with a validation split"
        found.append((text, f"give eval_vocab {len(validated)} entries at {preset.place}"))
    return found
