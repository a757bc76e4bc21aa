"""A point's place in Slurm's queue. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from amt_hydra.slurm.queue import Queued


@dataclass(frozen=True, slots=True)
class Submitted:
    """Where a point stands in the queue, known before and after it was submitted."""

    name: str
    """The job's name, which no other submission has."""
    task: int | None
    """Its place in the array; None where it is a job of its own."""
    job: str | None
    """The id of its job; None as long as it is not submitted."""

    def found(self, there: Mapping[str, Queued]) -> Queued | None:
        """Return its job among those `there`, by its id, or by its name where the launcher died before it knew that."""
        if self.job is not None:
            return there.get(self.job)
        named = (job for job in there.values() if job.name == self.name)
        return next((job for job in named if self.task is None or job.id.endswith(f"_{self.task}")), None)
