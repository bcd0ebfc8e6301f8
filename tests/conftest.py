"""One Spark session serves all tests that need real Hudi tables, integration and acceptance alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.session import S3A, start_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session(driver_memory="3g", packages=[S3A], conf={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
