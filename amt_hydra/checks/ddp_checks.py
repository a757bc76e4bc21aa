"""How several processes train together."""

import math
from collections.abc import Iterator

from amt_hydra.batches import GlobalBatch
from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.checks.identity_checks import IdentityHolds
from amt_hydra.drift import BATCH_FACTORS, batches
from amt_hydra.errors import nearest
from amt_hydra.resolve import batch_part

_DDP = tuple(f"ddp{how}" for how in ("", "_fork", "_notebook", "_spawn"))
STRATEGIES = (
    "auto",
    *(f"{name}{rest}" for name in _DDP for rest in ("", *(f"_find_unused_parameters_{x}" for x in ("false", "true")))),
    *("deepspeed", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_2_offload"),
    *("deepspeed_stage_3", "deepspeed_stage_3_offload", "deepspeed_stage_3_offload_nvme"),
    *("fsdp", "fsdp_cpu_offload", "single_device", "single_tpu", "single_xla", "xla", "xla_debug"),
)
"""What Lightning takes by name: StrategyRegistry.available_strategies() of 2.2 and of 2.6, and auto."""


class StrategyKnown(Check):
    """The strategy is one that Lightning knows.

    It is passed on as it is, and refused only when the trainer is made, after all imports.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look the name up; a repository whose flag lists its own names is judged by those."""
        name, channel = subject.decision("ddp.strategy").value, subject.channels.get("ddp.strategy")
        if not isinstance(name, str) or name in STRATEGIES or (channel and channel.flag and channel.flag.choices):
            return
        fitting = [one for one in STRATEGIES if subject.plan.bridge is None or not _is_no_program(one)]
        close = nearest(name, fitting) or "auto"
        yield self.error(
            f"ddp.strategy={name}: Lightning knows no such strategy; valid are {', '.join(STRATEGIES)}",
            subject.set_to("ddp.strategy", close),
        )


class RanksAreStarted(Check):
    """The ranks of a run under the bridge are started as programs of their own.

    The bridge patches the process that it starts: one that is forked or spawned from it runs without a rank of its own
    there, or dies because what was patched cannot be pickled.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look at how the strategy starts them."""
        name = subject.effective("ddp.strategy")
        if subject.plan.bridge is None or not isinstance(name, str) or not _is_no_program(name):
            return
        yield self.error(
            f"ddp.strategy={name}: its ranks are no programs of their own, and the bridge reaches those alone",
            subject.set_to("ddp.strategy", "ddp"),
            f"without the bridge: {subject.typed.changed('repo.bridge=false')}",
        )


class BatchIsMeant(Check):
    """The batch of an optimizer step over all ranks is shown, and goes on as it was on a resume.

    batch.local is per device: more of them make a larger batch, for which the learning rate was not chosen, and fewer
    steps for as many clips. Shared out otherwise over other devices, the same batch is the same training.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Multiply; compare with one device, and on a resume with the last launch."""
        before, now = batches(subject)
        if now is None:
            return
        if subject.settings.init.mode != "resume":
            before = None  # nothing is gone on with
        if before is not None and before.size != now.size:
            factors = [subject.state.earlier.get(key) == subject.effective(key) for key in BATCH_FACTORS]
            if all(factors):  # else SettingsContinue names what differs
                yield self.error(
                    f"a global batch of {now}, but the run so far had {before} (the last launch's record)",
                    *_shared_out(subject, before.size, now),
                    f"as before: {subject.typed.changed(f'ddp.devices={before.devices}', f'ddp.nodes={before.nodes}')}",
                )
        elif now.size > now.local and before is None:
            alone, times = now.local, now.size / now.local
            yield self.info(
                f"an optimizer step sees {now}, on one device {alone}; the learning rate is not scaled with it: with "
                f"Adam it is left or taken times the root ({math.sqrt(times):.3g}), with SGD {times:g} times",
                *_shared_out(subject, alone, now),
            )


def _shared_out(subject: Subject, size: int, now: GlobalBatch) -> list[str]:
    """The command under which these devices share a global batch of `size`, where it can be shared."""
    local, rest = divmod(size, now.ranks * now.accumulate)
    sub = batch_part(subject.settings, subject.channels, "sub") or 1
    if rest or not local or (local % sub and sub % local):
        return []
    parts = [f"batch.local={local}", *([f"batch.sub={local}"] if local % sub else [])]
    return [f"a batch of {size} on these devices: {subject.typed.changed(*parts)}"]


def _is_no_program(strategy: str) -> bool:
    """Whether its ranks are forked or spawned from the first."""
    return any(how in strategy for how in ("_spawn", "_fork", "_notebook"))
