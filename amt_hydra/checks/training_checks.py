"""Whether the training can do what is expected of it: monitor, validation, warm-up, batches."""

from collections.abc import Iterator

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.errors import nearest
from amt_hydra.repository import logs
from amt_hydra.resolve import batch_part


class MonitorLogged(Check):
    """The monitored metric is one that the repository logs.

    Otherwise the best checkpoint is dead code: nothing is ever ranked, and only last.ckpt is written.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look for the literal in the source."""
        monitor = subject.effective("checkpoint.monitor")
        repository = subject.repository
        if not isinstance(monitor, str) or (logged := logs(repository, monitor)) or monitor in repository.strings:
            return
        if logged is None:
            yield from self._unknown(subject, monitor)
            return
        known = [*repository.metrics, *repository.strings]
        close = nearest(monitor, known)
        way = f"{close} is, at {_place(subject, close)}: {subject.set_to('checkpoint.monitor', close)}" if close else ""
        yield self.warning(
            f"checkpoint.monitor={monitor} is logged nowhere in {repository.train.parent}", way or "check its spelling"
        )

    def _unknown(self, subject: Subject, monitor: str) -> Iterator[Finding]:
        """Where names are computed, one that was asked for is at least shown beside the repository's own."""
        decision, computed = subject.decision("checkpoint.monitor"), subject.repository.computed_metrics
        if not decision.origin.asked or not isinstance(decision.own, str) or decision.own == monitor:
            return
        where = f" at {computed[0]}" if computed else ""
        yield self.info(
            f"checkpoint.monitor={monitor}: names of metrics are computed{where}, so whether this one is logged cannot "
            f"be told; the repository's own is {decision.own}",
            subject.set_to("checkpoint.monitor", decision.own),
        )


class StepsToTrain(Check):
    """There is a step to train, and an end where the trainer needs one.

    With max_steps=0 a trainer returns at once; the bundled one refuses that, and a run without an end, at its start.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look at the limit; of the bundled trainer, whose cosine ends there, at that of epochs too."""
        settings, own, steps = subject.settings, subject.decision("max_steps").own, subject.whole_number("max_steps")
        way = subject.set_to("max_steps", own if isinstance(own, int) and own > 0 else 1000)
        if steps == 0:
            yield self.error("max_steps=0 trains nothing: valid are 1 or more, and -1 for no limit", way)
        elif steps == -1 and settings.repo.kind == "reference" and "max_epochs" not in settings.extra.flags:
            yield self.error(
                "max_steps=-1: the bundled trainer needs an end: valid are 1 or more, or extra.flags.max_epochs", way
            )


class FirstValidation(Check):
    """There is a validation before the end.

    Without one no monitored checkpoint can exist: only last.ckpt is written, with no error.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the validation interval with the steps to train."""
        interval, steps = subject.whole_number("val_interval"), subject.whole_number("max_steps")
        batches = (subject.whole_number("batch.accumulate") or 1) * steps if steps is not None and steps > 0 else None
        if interval is not None and batches is not None and interval > batches:
            yield self.warning(
                f"val_interval={interval} batches is beyond the end of the run ({batches} batches): no validation, and "
                "no checkpoint ranked by the monitor",
                subject.set_to("val_interval", max(1, batches // 4)),
            )


class WarmupEnds(Check):
    """The warm-up ends before the run does.

    A run that never leaves it trains with a learning rate below the one asked for, silently. Where both end together,
    this family's cosine, which runs from the one to the other, divides by zero at the last step.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the warm-up with the steps to train."""
        warmup, steps = subject.whole_number("optimizer.warmup_steps"), subject.whole_number("max_steps")
        if warmup is None or steps is None or not 0 < steps <= warmup:
            return
        if subject.settings.init.mode == "resume":  # the warm-up is the checkpoint's, and is gone on with
            way = subject.set_to("max_steps", 10 * warmup)
        else:
            way = subject.set_to("optimizer.warmup_steps", steps // 10)
        if warmup == steps and _cosine_to_the_end(subject):
            yield self.error(
                f"optimizer.warmup_steps={warmup} is max_steps: the cosine after it has no step left, and the run dies "
                "at its last one by a ZeroDivisionError",
                way,
            )
        else:
            yield self.warning(
                f"optimizer.warmup_steps={warmup} is not below max_steps={steps}: the run never leaves the warm-up", way
            )


class BatchDivides(Check):
    """batch.local is a multiple of batch.sub.

    A local batch is processed as sub-batches; this family's loaders assert that it divides.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the two, whoever decided them."""
        local = batch_part(subject.settings, subject.channels, "local")
        sub = batch_part(subject.settings, subject.channels, "sub")
        if local and sub and local % sub:
            below = max(1, local // sub) * sub
            yield self.error(
                f"batch.local={local} is no multiple of batch.sub={sub}",
                subject.set_to("batch.local", below),
                subject.set_to("batch.sub", _divisor(local, sub)),
            )


def _divisor(local: int, sub: int) -> int:
    return max(d for d in range(1, min(local, sub) + 1) if local % d == 0)


def _place(subject: Subject, name: str) -> str:
    found = subject.repository.metrics.get(name) or subject.repository.strings.get(name)
    return str(found)


def _cosine_to_the_end(subject: Subject) -> bool:
    """Whether it is upstream's schedule: LR_SCHEDULE.total_steps, which max_steps replaces, less the warm-up."""
    cosine = str(subject.effective("optimizer.scheduler")).lower() == "cosine"
    return cosine and "shared_cfg.LR_SCHEDULE.total_steps" in subject.repository.config
