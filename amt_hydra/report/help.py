"""--help: the whole, or one verb."""

from amt_hydra.commands import PROGRAM
from amt_hydra.verbs import PATH_VERBS, VERBS

_GENERAL = """\
usage: {program} [VERB] [key=value …] [options]

verbs:
{verbs}

groups (option=… picks a file of conf/<group>/):
{groups}

options:
  --json             for programs: one JSON document on stdout
  -m                 a sweep: lists of values (a,b) are multiplied out; plan -m only shows the points
  --config-dir DIR   a folder of configs of your own, besides ./conf and $AMT_CONF
  --cfg job          the composed config; --resolve with values instead of references
  --version, --help  (VERB --help for one verb)

variables: AMT_REPO, AMT_OUTPUTS, AMT_CONF, AMT_INIT_CKPT
exit codes: 64 wrong usage, 65 trained nothing, 70 bug, 78 refused by a check, 130 Ctrl-C, else train.py's own

examples:
  {program} init=warmstart precision=bf16
  {program} plan experiment=quick
  {program} exp_id=first init=resume max_steps=1500
  {program} -m optimizer.lr=1e-4,3e-4 seed=1,2
"""


def show_help(verb: str | None) -> None:
    """Print help for one verb, or the overview for None."""
    if verb is None:
        width = max(map(len, VERBS))
        verbs = "\n".join(f"  {name:<{width}}  {text}" for name, text in VERBS.items())
        print(_GENERAL.format(program=PROGRAM, verbs=verbs, groups=_groups()), end="")
        return
    words = "[PATH …]" if verb in PATH_VERBS else "[--markdown]" if verb == "conventions" else "[key=value …]"
    print(f"usage: {PROGRAM} {verb} {words} [--json]\n\n{VERBS[verb]}")
    if verb in ("train", "plan"):
        print(f"\ngroups:\n{_groups()}\n\nevery setting, with its meaning: {PROGRAM} --cfg job, conf/config.yaml")


def _groups() -> str:
    from amt_hydra.conf_path import groups, shipped

    lines = []
    for group in groups([shipped()]):
        options = sorted(p.stem for p in (shipped() / group).glob("*.yaml"))
        lines.append(
            f"  {group:<13} {', '.join(options)}" + (", any key of data_presets.py" * (group == "data_presets"))
        )
    return "\n".join(lines)
