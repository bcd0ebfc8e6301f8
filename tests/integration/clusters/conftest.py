"""A service whose workers run on clusters, the folder of its tables, and the start of workers on YARN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.cluster_worker import service_without_worker
from tests.integration.clusters.yarn_worker import Start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[Daemon]:
    with service_without_worker(tmp_path_factory.mktemp("service"), lake) as running:
        yield running


@pytest.fixture(scope="module")
def start(spark: SparkSession, daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Start:
    return Start(spark, daemon, tmp_path_factory)
