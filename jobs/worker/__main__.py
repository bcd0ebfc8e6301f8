"""Runs a worker under `spark-submit`, with the master, options and jars given there. .docs/spark-clusters.md has
examples."""

from __future__ import annotations

import argparse
import os

from jobs.contract import DEFAULT_GROUP
from jobs.format import gzip_level
from jobs.logs import FORMAT_VARIABLE, LogFormat
from jobs.storage.permissions import Permissions
from jobs.worker.lease_loop import main

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument(
    "--service",
    action="append",
    required=True,
    help="URL of the service, such as http://127.0.0.1:8080; repeat it for replicas",
)
parser.add_argument("--slots", type=int, default=1, help="how many jobs may run at once")
parser.add_argument("--group", default=DEFAULT_GROUP, help="group of the tables whose jobs it runs")
arguments = parser.parse_args()
try:
    gzip_level.level()
except ValueError as error:
    parser.error(str(error))
bearer = os.environ.get("GROUNDSKEEPER_WORKER_TOKEN")
log_format = LogFormat(os.environ.get(FORMAT_VARIABLE, LogFormat.TEXT))
permissions = Permissions.of_environment(os.environ)
raise SystemExit(
    main(
        arguments.service,
        token=bearer,
        slots=arguments.slots,
        group=arguments.group,
        permissions=permissions,
        log_format=log_format,
    )
)
