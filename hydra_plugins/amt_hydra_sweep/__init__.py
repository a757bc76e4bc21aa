"""Launchers and a sweeper for Hydra, which looks for them here. What they do stands in amt_hydra.sweep."""

from collections.abc import Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class Points(BasicSweeper):
    """Hydra's own sweeper, which leaves it to our launchers to compose each point: they check more, and in parallel."""

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        """Nothing: every point of the batch is planned and checked by the launcher before one of them starts."""


class LocalLauncher(Launcher):
    """Runs one point after the other on this machine."""

    task_function: TaskFunction

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what is launched: the sweep, which plans points and runs them."""
        del hydra_context, config  # points are composed by the sweep, from the overrides alone
        self.task_function = task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Plan all points; then run those that have something to train."""
        from amt_hydra.sweep.run import Sweep

        assert isinstance(self.task_function, Sweep)
        return self.task_function.launch(job_overrides, initial_job_idx)
