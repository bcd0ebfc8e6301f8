"""The Spark session of a writer in a process of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jobs.hudi.session import start_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

ENVIRONMENT = "spark.executorEnv."


def writer_session(app_name: str, master: str, conf: Mapping[str, str]) -> SparkSession:
    """In local mode the JVM is the executor: it gets the variables in `conf`, and this Python goes on without them."""
    os.environ.update(
        {key.removeprefix(ENVIRONMENT): value for key, value in conf.items() if key.startswith(ENVIRONMENT)}
    )
    return start_session(master=master, app_name=app_name, driver_memory="1g", conf=conf)
