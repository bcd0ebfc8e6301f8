"""One Flink cluster for all tests that need a real Flink job; they are skipped where its jars are missing."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from tests.flink.cluster import FlinkCluster
from tests.flink.distribution import MissingError, distribution

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def flink_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkCluster]:
    """A Flink cluster, which needs about 1.5 GiB of memory, and 10 s to start."""
    try:
        distribution()
    except MissingError as error:
        warnings.warn(f"no test has seen a real Flink job: {error}", stacklevel=1)
        pytest.skip(f"no real Flink: {error}")
    with FlinkCluster(tmp_path_factory.mktemp("flink")) as cluster:
        yield cluster


@pytest.fixture
def flink(flink_cluster: FlinkCluster) -> Iterator[FlinkCluster]:
    """The cluster without jobs of other tests."""
    yield flink_cluster
    flink_cluster.cancel_all()
