"""Launchers and a sweeper for Hydra, which looks for them here. What they do stands in amt_hydra.sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher as SubmititLauncher
from omegaconf import DictConfig

if TYPE_CHECKING:
    from amt_hydra.sweep.local import Slots
    from amt_hydra.sweep.run import Sweep


class Points(BasicSweeper):
    """Hydra's own sweeper, which leaves it to our launchers to compose each point: they check more, and in parallel."""

    def __init__(self, params: dict[str, str] | None = None) -> None:
        """Take lists of a config besides those of the command line; never in batches, which could not be seen whole."""
        super().__init__(max_batch_size=None, params=params)

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        """Nothing: every point of the batch is planned and checked by the launcher before one of them starts."""


class LocalLauncher(Launcher):
    """Runs one point after the other on this machine."""

    sweep: "Sweep"

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what is launched: the sweep, which plans points and runs them."""
        from amt_hydra.sweep.run import Sweep

        del hydra_context, config  # points are composed by the sweep, from the overrides alone
        assert isinstance(task_function, Sweep)
        self.sweep = task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Plan all points; then run those that have something to train."""
        from amt_hydra.sweep.words import typed

        return self.sweep.launch([typed(one) for one in job_overrides], initial_job_idx, self.slots)

    def slots(self) -> "Slots":
        """What points that run at the same time share; made when the points were planned."""
        from amt_hydra.sweep.local import OneAtATime

        return OneAtATime()


class GpuPoolLauncher(LocalLauncher):
    """Runs as many points at once as there are GPUs for."""

    def __init__(self, gpus: object = None) -> None:
        super().__init__()
        self.gpus = gpus

    def slots(self) -> "Slots":
        """Leases of the GPUs."""
        from amt_hydra.sweep.gpus import pool

        found = pool(self.gpus, self.sweep.environ)
        if self.gpus is not None:
            self.sweep.gpus = found.gpus
        return found


class SlurmLauncher(SubmititLauncher):  # type: ignore[misc] # the package is not typed
    """Submits all points at once and returns, where its parent stays for their results."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Plan all points; then submit those that have something to train."""
        from amt_hydra.sweep.run import Sweep
        from amt_hydra.sweep.words import typed

        assert isinstance(self.task_function, Sweep)
        return self.task_function.submit([typed(one) for one in job_overrides], initial_job_idx)
