import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cluster import Cluster, missing
from counting import Lab, make_lab, until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Slurm of this test file's own; skipped where it cannot be, but not in CI."""
    why = missing()
    if why:
        assert "AMT_CI" not in os.environ, why
        pytest.skip(why)
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def farm(tmp_path: Path, cluster: Cluster) -> Iterator[Lab]:
    """The counting repository, where Slurm is; no job of it is left afterwards."""
    lab = make_lab(tmp_path)
    yield replace(lab, environ={**lab.environ, **cluster.environ})
    cluster("scancel", "-u", str(os.getuid()))
    until(lambda: not cluster.jobs())
