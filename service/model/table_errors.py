"""Errors of tables, of their registration, of their locks, and of their Flink jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from jobs import lock_errors
from jobs.problems.permissions import OPTION_NOT_ALLOWED
from jobs.problems.rescales import BUCKET_INDEX_CONTRADICTED
from service.model.errors import ConflictError, GroundskeeperError, InvalidError, NotFoundError


class TableNotFoundError(NotFoundError):
    type = "table-not-found"
    title = "No table with this id is registered"
    hint = (
        "GET /v1/tables, or `groundskeeper tables list`, lists the registered tables; POST /v1/tables, or"
        " `groundskeeper tables add`, registers one."
    )
    why = (
        "The id in the address is not the id of a registered table. Perhaps it was mistyped, or the table has been"
        " unregistered: a table that is registered again gets a new id."
    )
    example = "There is no table tbl_0f3c2a9d5e7b1c44."


class CallbackUnknownTableError(NotFoundError):
    type = "callback-unknown-table"
    title = "No table is registered with the base path of this callback"
    hint = "Register the table (POST /v1/tables; GET lists base paths), or switch off the writer's callback."
    why = (
        "A writer reported a commit on a base path that no registered table has. The service resolves `..` and links"
        " before it compares the paths, so another spelling of the same path is not the cause."
    )
    example = "No table is registered at s3a://lake/orders."


class SnapshotNotTakenError(NotFoundError):
    type = "snapshot-not-taken"
    title = "No poll of the table has succeeded yet"
    hint = "The first poll follows the registration within moments. `groundskeeper problems` shows why polls fail."
    why = (
        "The state of a table comes from its last successful poll, and no poll has succeeded yet: the table was"
        " registered a moment ago, or every poll has failed since then."
    )
    example = "Reading the table's storage failed: s3a://lake/orders: connection refused"


class OptionNotAllowedError(InvalidError, like=OPTION_NOT_ALLOWED):
    """`extensions["errors"]` lists the refused options, each with `field` and `message`."""

    type = "option-not-allowed"
    title = "An option of the table is not allowed"
    hint = "Remove it, or PATCH the table with other options."
    example_members: ClassVar[Mapping[str, Any]] = {
        "errors": [{"field": "hudi_options.hoodie.write.commit.callback.class", "message": "is not allowed"}]
    }


class LockUnavailableError(InvalidError, like=lock_errors.LockUnavailableError):
    type = "lock-unavailable"
    title = "No server of the table's lock can be reached"
    hint = "Check that the server runs, and that the writers use the same address. Then send the request again."


class FlinkHostNotAllowedError(InvalidError):
    type = "flink-host-not-allowed"
    title = "The service may not call this Flink cluster"
    hint = (
        "An administrator can allow its host in GROUNDSKEEPER_FLINK_HOSTS (`host` or `host:port`, separated by commas)."
        " Otherwise stop the Flink job yourself when a job waits for its end, and POST /v1/jobs/{id}/writers-stopped."
    )
    why = (
        "`writers.flink` makes the service call the REST API of a Flink cluster, and the settings do not allow the"
        " cluster's host. Without a list of allowed hosts, a registration could make the service call any address of"
        " its network."
    )
    example = "flink-jobmanager:8081 is not one of the allowed hosts."


class NotAHudiTableError(InvalidError):
    type = "not-a-hudi-table"
    title = "There is no Hudi table at this path"
    hint = "A Hudi table has a file .hoodie/hoodie.properties below its base path."
    why = (
        "The folder exists, but has no readable file `.hoodie/hoodie.properties`. The path may belong to a "
        "partition, to a folder above several tables, or to a table of another format."
    )
    example = "/data/trips/2026 has no .hoodie/hoodie.properties"


class FlinkError(GroundskeeperError):
    type = "flink-error"
    title = "The Flink cluster did not respond as expected"
    hint = "Check `writers.flink` of the table, and that the cluster is up."
    why = "The Flink cluster of `writers.flink` did not answer, knows no such job, or could not take a savepoint."
    example = "http://flink-jobmanager:8081 knows no running job named orders-ingest."


class TableUnsupportedError(InvalidError):
    type = "table-not-supported"
    title = "Groundskeeper does not support this kind of Hudi table"
    hint = "Table versions 6, 8 and 9 with Parquet base files are supported."
    why = (
        "The table has a version, a type, a file format or an index for which it is not proved that the services keep"
        " its rows correct."
    )
    example = "Table version 5"


class TableAlreadyRegisteredError(ConflictError):
    type = "table-already-registered"
    title = "A table with this base path is already registered"
    hint = "Use the registered table (`table_id`), or unregister it first."
    why = (
        "A table can be registered only once. The service resolves `..` and links before it compares base paths, so"
        " another spelling means the same table. `table_id` is its id. PUT /v1/tables/by-path accepts a repeated"
        " registration."
    )
    example = "/data/trips is registered as tbl_0f3c2a9d5e7b1c44."
    example_members: ClassVar[Mapping[str, Any]] = {"table_id": "tbl_0f3c2a9d5e7b1c44"}


class BucketIndexContradictedError(ConflictError, like=BUCKET_INDEX_CONTRADICTED):
    type = "bucket-index-contradicted"
    title = "The record keys in the table contradict the claimed bucket index"
    hint = "Claim the number of buckets and the hash fields that the writers use (`hoodie.bucket.index.*`)."
    example = "37 of 40 sampled keys are in other buckets."
    example_members: ClassVar[Mapping[str, Any]] = {"sampled": 40, "contradicting": 37}


class TableBusyError(ConflictError):
    type = "table-busy"
    title = "The table has active jobs"
    hint = "Wait for the jobs to end, or cancel them first."
    why = (
        "A table with queued or running jobs cannot be unregistered, because a worker would continue to change the"
        " table and nobody would notice."
    )
    example = "orders has 1 active job: job_4be1c0d2f6a89b37."
    example_members: ClassVar[Mapping[str, Any]] = {"job_ids": ["job_4be1c0d2f6a89b37"]}
