"""The settings of a run, typed. conf/config.yaml gives every key its value; nothing here has a default.

None means: the repository decides. Each key is of one kind, which says what a change of it means for a run that
exists already: `identity` keys change the result, `restored` ones are brought back from the checkpoint by a resume
(so a change has no effect there), `free` ones may differ from launch to launch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["identity", "restored", "free"]
Mode = Literal["scratch", "resume", "warmstart"]

MOST_STEPS = 2**63 - 1
"""torch counts in int64 (torch.iinfo(torch.int64).max)."""
MOST_SEED = 2**32 - 1
"""numpy.random.seed takes no more, and Lightning's seed_everything refuses it."""
NOT_ONLINE = ("offline", "disabled", "dryrun")
"""Modes of W&B that need no credentials."""
MOST_CLIPS = 2**20
"""At upstream's 32767 float32 samples a clip, 128 GiB of audio in one batch: no GPU holds more."""


def _identity(**limits: Any) -> Any:
    return field(metadata={"kind": "identity", **limits})


def _restored(**limits: Any) -> Any:
    return field(metadata={"kind": "restored", **limits})


def _free(**limits: Any) -> Any:
    return field(metadata={"kind": "free", **limits})


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """The training repository, and how settings reach it."""

    kind: str = _free()
    """auto, reference, amt_ai, yourmt3, or the name of a mapping of your own: conf/repo/<kind>.yaml."""
    path: Path | None = _free()
    """Root of the repository. None: AMT_REPO, else ~/code/amt_ai, else the bundled one (kind auto)."""
    python: Path | None = _free()
    """Interpreter that runs train.py. None: the repository's own .venv or venv, else the one running us."""
    runs: Path | None = _free()
    """Folder that holds <project>/<exp_id>. None: read from the repository (`runs_from`)."""
    init_ckpt: str | None = _free()
    """Warm-start checkpoint where none is given: a path, or "best of EXP_ID" for the best one of that experiment."""
    runs_from: tuple[str, ...] = _free()
    """Means by which the repository says where its runs go, first found counts: "flag:DEST", "config:DOTTED.KEY"."""
    loaders: Literal["one", "per_sub_batch"] = _free()
    """How many DataLoaders each rank has: one, or one per sub-batch (batch.local / batch.sub)."""
    checkpoints: str = _free()
    """Where an experiment's checkpoints lie: a template of {runs}, {project} and {exp_id}."""
    means: Mapping[str, tuple[str, ...]] = _free(nested=True)
    """Per setting, the means by which it reaches this kind of repository; the first that the source has is used."""
    saved: Mapping[str, tuple[str, ...]] = _free(nested=True)
    """Per setting, the names under which a checkpoint's hyper_parameters hold it, beside those of its means."""
    lazy: Mapping[str, tuple[str, ...]] = _free()
    """Parts of the model that exist only where a value is set: prefix of their tensors -> means of the value."""
    bridge: bool = _free()
    """Bring what the repository lacks by a bridge in train.py's own process; false: train.py is run as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Init:
    """What the run declares itself to be."""

    mode: Mode = _free()
    """scratch, resume or warmstart."""
    ckpt: Path | None = _identity()
    """Checkpoint whose weights a warm-start takes."""
    min_coverage: float = _free(least=0, most=1)
    """Least share of the model's elements that a warm-start must find in its checkpoint (by the bridge only)."""
    overwrite: bool = _free()
    """Move an experiment that is in the way aside (nothing is ever deleted)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Numeric precision, as Lightning spells it."""

    name: str | None = _identity()
    """bf16-mixed, 16-mixed, 32, …: passed on as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Architecture of the model: a checkpoint loads only into the one it was trained with."""

    task: str | None = _identity()
    """Task, and so the vocabulary: a key of the repository's task.py."""
    encoder_type: str | None = _identity()
    """t5, perceiver-tf, conformer."""
    decoder_type: str | None = _identity()
    """t5, multi-t5."""
    audio_codec: str | None = _identity()
    """melspec, spec."""
    hop_length: int | None = _identity(least=1, most=MOST_STEPS)
    """Audio samples between two frames."""
    n_mels: int | None = _identity(least=1, most=MOST_STEPS)
    """Mel bins, of melspec only."""
    input_frames: int | None = _identity(least=1, most=MOST_STEPS)
    """Audio samples of one input segment."""
    event_length: int | None = _identity(least=1, most=MOST_STEPS)
    """Longest sequence of event tokens."""
    num_latents: int | None = _identity(least=1, most=MOST_STEPS)
    """Latents of Perceiver-TF."""
    attention_to_channel: bool | None = _identity()
    """Perceiver-TF: attention over channels."""
    sca_use_query_residual: bool | None = _identity()
    """Perceiver-TF: residual around the query of the spectral cross-attention."""
    encoder_position_encoding_type: str | None = _identity()
    """sinusoidal, trainable, rope, …"""
    rope_partial_pe: bool | None = _identity()
    """Perceiver-TF: rotary encoding of a part of each head only."""
    ff_layer_type: str | None = _identity()
    """Perceiver-TF: mlp, moe, gmlp."""
    ff_widening_factor: int | None = _identity(least=1, most=MOST_STEPS)
    """Perceiver-TF: width of the feed-forward layer over that of the model."""
    moe_num_experts: int | None = _identity(least=1, most=MOST_STEPS)
    """Perceiver-TF: experts of ff_layer_type moe."""
    moe_topk: int | None = _identity(least=1, most=MOST_STEPS)
    """Perceiver-TF: experts asked per token."""
    hidden_act: str | None = _identity()
    """Perceiver-TF: gelu, silu, relu."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Optimizer and learning-rate schedule."""

    name: str | None = _identity()
    """As the repository spells it; this family compares it in lower case."""
    lr: float | None = _restored(above=0)
    """Base learning rate."""
    warmup_steps: int | None = _identity(least=0, most=MOST_STEPS)
    """Optimizer steps of linear warm-up."""
    scheduler: str | None = _identity()
    """Schedule after the warm-up: cosine, constant, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Batch size per GPU: `local` clips, processed as parts of `sub`; local is a multiple of sub."""

    sub: int | None = _identity(least=1, most=MOST_CLIPS)
    """Clips of one sub-batch."""
    local: int | None = _identity(least=1, most=MOST_CLIPS)
    """Clips per GPU and step."""
    accumulate: int | None = _identity(least=1, most=MOST_STEPS)
    """Batches added up before one optimizer step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddp:
    """Where the run computes."""

    accelerator: Literal["auto", "cpu", "gpu"] = _free()
    """auto: GPUs where there are any. cpu hides the GPUs from train.py."""
    devices: int | Literal["auto"] = _free(least=1)
    """GPUs, or CPU ranks, per node. auto: all visible GPUs, else one CPU rank."""
    nodes: int = _free(least=1)
    """Machines."""
    strategy: str | None = _free()
    """Lightning's strategy: auto, ddp, …"""
    sync_batchnorm: bool | None = _identity()
    """Batch statistics over all ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPresets:
    """Which data set."""

    name: str | None = _identity()
    """A key of the repository's data_presets.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """How data is found and loaded."""

    num_workers: int | Literal["auto"] | None = _free(least=0)
    """Loader processes per GPU and loader; auto: what the CPUs of the job leave room for."""
    home: Path | None = _identity()
    """Folder of the data set, where the repository takes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Which checkpoints are kept."""

    monitor: str | None = _identity()
    """Metric that ranks them."""
    mode: Literal["max", "min"] | None = _identity()
    """Whether more of it is better."""
    save_top_k: int | None = _free(least=-1, most=MOST_STEPS)
    """How many of the best are kept; -1: all."""
    save_last: bool | None = _free()
    """Keep last.ckpt, as a real copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logger:
    """Where metrics go."""

    kind: Literal["auto", "wandb", "csv"] = _free()
    """auto: Weights & Biases where the job has credentials, else CSV files."""
    mode: Literal["online", "offline", "disabled", "shared", "run", "dryrun"] | None = _free()
    """W&B's mode. None: WANDB_MODE, else the repository's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Switched on only where the repository implements them."""

    deepspeed_offload: bool = _identity()
    """DeepSpeed with optimizer state on the CPU."""
    rl: bool = _identity()
    """The reinforcement-learning branch."""
    dynamic_dataset_weighting: bool = _identity()
    """Sampling weights of data sets that change during training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debug:
    """Switches of the debugging path."""

    grad_finite: bool = _free()
    """AMT_DEBUG_GRAD_FINITE: stop at the first non-finite gradient and name its parameter."""
    detect_anomaly: bool = _free()
    """AMT_DETECT_ANOMALY: torch's anomaly detection (halves the speed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How train.py is run here."""

    attach: bool = _free()
    """In the foreground, on this terminal, for a debugger; no log file is kept."""
    grace: float = _free(above=0)
    """Seconds between TERM and KILL when a run is stopped."""
    ranks: Literal["lightning", "srun"] = _free()
    """Who starts the ranks: lightning on this machine, or srun on all machines of the Slurm job that we are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep as a whole: what is given with -m. A single run has no use for it."""

    max_points: int = _free(least=1)
    """Points that may be started in one go."""
    fail_fast: bool = _free()
    """Whether the first point that fails ends the sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    """The jobs of hydra/launcher=slurm. How many machines, tasks and GPUs they have follows from ddp."""

    partition: str | None = _free()
    """None: the cluster's own default."""
    account: str | None = _free()
    """Who pays. None: the user's own default."""
    qos: str | None = _free()
    """Quality of service. None: the account's own default."""
    constraint: str | None = _free()
    """Features that the machines must have, e.g. a100."""
    hours: float = _free(above=0)
    """Time limit of a job, in hours. A run that is not done by then is requeued and goes on."""
    requeues: int = _free(least=0)
    """Most times that a run is requeued at its time limit."""
    signal: int = _free(least=30)
    """Seconds before the time limit at which train.py is asked to save and to end."""
    cpus_per_task: int | None = _free(least=1)
    """CPUs of each rank. None: one, and one for each of its loader processes."""
    mem_gb: int | None = _free(least=1)
    """Memory per machine, in GB. None: the partition's own default."""
    setup: tuple[str, ...] = _free()
    """Shell lines of the job before anything else, e.g. "module load cuda"."""
    options: Mapping[str, str] = _free()
    """Further options of sbatch by their long names, e.g. mail-type."""
    wait: bool = _free()
    """Stay until every job has ended; else they are submitted, and that is all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Where we write."""

    outputs: Path = _free()
    """Records, and the bundled repository's checkpoints, below <project>/<exp_id>."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Which findings count."""

    ignore: Mapping[str, str] = _free()
    """Check id -> why it may be ignored; the reason is recorded."""
    strict: bool = _free()
    """Warnings are errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What no setting carries."""

    flags: Mapping[str, Any] = _identity()
    """Further flags of train.py by their dest: a value as it is typed, a list of them, true or false for switches."""
    config: Mapping[str, Any] = _identity(nested=True)
    """Further values of the repository's config.py by dotted key, set by the bridge."""
    env: Mapping[str, str] = _free()
    """Further environment variables of train.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a run is asked to be."""

    exp_id: str = _free(folder=True)
    """Name of the experiment: a plain folder name."""
    project: str = _free(folder=True)
    """Name of the project: a plain folder name; W&B's project too."""
    seed: int | None = _identity(least=0, most=MOST_SEED)
    """Random seed."""
    max_steps: int | None = _free(least=-1, most=MOST_STEPS)
    """Optimizer steps to train to, counted from the run's start; -1: no limit."""
    val_interval: int | None = _free(least=1, most=MOST_STEPS)
    """Training batches between validations."""
    repo: Repo = _free()
    init: Init = _free()
    model: Model = _free()
    precision: Precision = _free()
    optimizer: Optimizer = _free()
    batch: Batch = _free()
    ddp: Ddp = _free()
    data_presets: DataPresets = _free()
    data: Data = _free()
    checkpoint: Checkpoint = _free()
    logger: Logger = _free()
    features: Features = _free()
    debug: Debug = _free()
    launch: Launch = _free()
    sweep: Sweep = _free()
    slurm: Slurm = _free()
    paths: Paths = _free()
    checks: Checks = _free()
    extra: Extra = _free()
