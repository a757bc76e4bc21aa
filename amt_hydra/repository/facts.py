"""The values that reading a repository yields. Pure data: every fact carries the place it was read from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

GoesOn = Literal["resume", "warmstart", "scratch", "unknown"]
"""What becomes of a run whose last.ckpt is there, by the repository's own code."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fact stands: an absolute file and a line, counted from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that the source computes instead of spelling it out; `text` is the expression as written."""

    text: str

    def __str__(self) -> str:
        return f"computed: {self.text}"


@dataclass(frozen=True, slots=True)
class Flag:
    """One argparse argument."""

    dest: str
    """The attribute name, by argparse's own rule: explicit dest, else the first long option, else the first short."""
    options: tuple[str, ...]
    """Option strings as written, e.g. ("-it", "--max-steps"); empty for a positional."""
    type: str
    """Name of the type callable as written ("str", "int", "float", "str2bool", …); "str" where none is given and
    "bool" for store_true, store_false and BooleanOptionalAction."""
    action: str
    """argparse's action: "store" unless said otherwise."""
    nargs: int | str | None
    default: object
    """A literal, a Computed, or None where none is given. store_true without default is False, store_false True."""
    choices: tuple[object, ...] | Computed | None
    required: bool
    """True for a positional that must be given, and for required=True."""
    place: Place
    reads: tuple[Place, ...] | None
    """Where the parsed value is read; empty: parsed and read nowhere; None: cannot be decided (vars(args), getattr)."""
    lost: str = ""
    """Why giving it has no effect although it is read, in words with file:line: it sets a key that nothing reads, or
    only a deep copy of what the loaders read. Empty where it has an effect, or where that cannot be decided."""

    @property
    def option(self) -> str | None:
        """The option to put on a command line: the first long one, else the first short one; None for a positional."""
        return next((o for o in self.options if o.startswith("--")), self.options[0] if self.options else None)


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One leaf of a module-level dictionary of config.py, or a module-level scalar."""

    key: str
    """Dotted from the module-level name, e.g. "shared_cfg.LR_SCHEDULE.warmup_steps"."""
    value: object
    """The literal (list and tuple values are leaves), or Computed."""
    place: Place


@dataclass(frozen=True, slots=True)
class Switch:
    """One expression that reads an environment variable."""

    name: str
    expression: str
    """The whole expression as written, e.g. `os.environ.get("AMT_FORCE_SCRATCH", "0") == "1"`."""
    place: Place
    definitions: tuple[str, ...] = ()
    """Source of the constants and functions of the repository that the expression names: what deciding it takes."""
    text_only: bool = False
    """The variable's text goes on into something that cannot be followed: whether the text is empty decides nothing."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One key of data_presets.py. What the source computes is None: it cannot be told."""

    place: Place
    members: tuple[str, ...] | None = None
    """The single presets that a multi preset names under "presets"; None for a single one."""
    vocabularies: int | None = None
    """Length of a multi preset's eval_vocab: one entry per member is read."""
    lacks: tuple[str, ...] = ()
    """Its splits that are None in so many words: "train_split", "validation_split"."""


@dataclass(frozen=True, slots=True)
class Task:
    """One key of task.py's task_cfg."""

    place: Place
    channels: int | None
    """num_decoding_channels; 1 where none is given; None where the source computes it."""


@dataclass(frozen=True, slots=True)
class Load:
    """One place where a model takes weights from a file: load_state_dict, load_from_checkpoint."""

    place: Place
    takes: Literal["last", "init", "unknown"]
    """The checkpoint found in the experiment's folder, the one that a flag names, or neither can be told."""
    strict: bool | None
    """Whether every key has to fit; None where that cannot be decided."""
    weights_only: bool | None
    """What torch.load is told; None where nothing is said (True since torch 2.6), or it cannot be decided."""


@dataclass(frozen=True, slots=True)
class Start:
    """How the repository's own code starts a run."""

    loads: tuple[Load, ...] = ()
    falls_through: tuple[Place, ...] = ()
    """Where a checkpoint that is missing becomes a scratch run, without an error."""
    precedence: Literal["last", "init", "unknown"] = "unknown"
    """Which one wins where both a last.ckpt and a flag's checkpoint are there."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A value that is None in so many words where it is used as if it were not: train.py dies there."""

    expression: str
    """The use, as written: wandb_logger.watch."""
    none: Place
    used: Place


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the three files of a repository stand, relative to its root."""

    name: str
    train: str
    config: str
    data_presets: str


HOME = Layout("home", "src/train.py", "src/config.py", "src/data_presets.py")
FAMILY = Layout("family", "amt/src/train.py", "amt/src/config/config.py", "amt/src/config/data_presets.py")
LAYOUTS = (HOME, FAMILY)


@dataclass(frozen=True, slots=True)
class Repository:
    """All that was read. Paths are absolute."""

    root: Path
    layout: Layout
    cwd: Path
    """The folder of train.py: this family's relative paths are meant from there."""
    train: Path
    config_file: Path | None
    presets_file: Path | None
    flags: tuple[Flag, ...]
    config: Mapping[str, ConfigValue]
    presets: Mapping[str, Preset]
    """Every key of every module-level dictionary of presets in data_presets.py."""
    switches: tuple[Switch, ...]
    """Every read of an environment variable in the repository's Python files."""
    metrics: Mapping[str, Place]
    """Names logged as plain strings: first arguments of .log(…), keys of .log_dict({…})."""
    strings: Mapping[str, Place]
    """Every other string literal containing "/" that could be a metric's name or the start of one ("validation/macro_"
    of an f-string): collected only where `metrics` is empty or not the whole list."""
    resumes: tuple[Place, ...]
    """Calls of .fit(…) that pass a ckpt_path which can be something: only these continue step, optimizer and
    schedule. A call in a branch that is taken only where its ckpt_path is None does not count."""
    computed_metrics: tuple[Place, ...] = ()
    """Where names are logged that the source computes: while there are any, `metrics` is not the whole list."""
    metric_patterns: tuple[str, ...] | None = None
    """Regular expressions for the computed names, one of which each of them matches; None where any may be anything."""
    start: Start = Start()
    saves: tuple[Place, ...] = ()
    """Calls of .save_checkpoint(…): the repository writes checkpoints itself, beside those of ModelCheckpoint."""
    loggers: Mapping[str, Place] = field(default_factory=dict)
    """Logger classes of Lightning that the source makes one of: WandbLogger, CSVLogger, … -> where."""
    lightning: tuple[str, ...] = ()
    """The packages that Lightning is imported from: "pytorch_lightning", "lightning"."""
    undefined: Mapping[str, Place] = field(default_factory=dict)
    """args.NAME that is read and that nothing defines -> where: train.py dies there."""
    broken: tuple[Broken, ...] = ()
    unparsed: Mapping[Place, str] = field(default_factory=dict)
    """Where a file that train.py imports in any case does not parse, and why: it dies there. Of the files that were
    looked into."""
    trains: bool = True
    """Whether anything in what train.py runs may start a training: a word like .fit or LightningCLI."""
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Every key of task.py's task_cfg."""
    problems: tuple[str, ...] = ()
    """What could not be read (a helper file that does not parse), in words for a user."""

    @property
    def goes_on(self) -> GoesOn:
        """What its own code makes of a last.ckpt that it finds."""
        if self.resumes:
            return "resume"
        taken = {load.takes for load in self.start.loads}
        return "warmstart" if "last" in taken else "unknown" if "unknown" in taken else "scratch"

    def flag(self, dest: str) -> Flag | None:
        """The flag with this dest."""
        return next((f for f in self.flags if f.dest == dest), None)
