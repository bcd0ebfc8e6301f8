"""Refusals because a worker's own settings do not permit what the table or the job asks for."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

OPTION_NOT_ALLOWED: Final = ProblemType(
    "option-not-allowed",
    "An option of the table is not allowed",
    why="Options of tables and locks reach Hudi's client on the workers. Options that name classes, files or"
    " addresses outside the table need the permission of the settings. Otherwise a registration could make a"
    " worker run foreign code or read foreign files.",
    example="hudi_options.hoodie.write.commit.callback.class: is not allowed",
    hint="Remove the option. PATCH the table to change its options.",
)
PATH_NOT_ALLOWED: Final = ProblemType(
    "path-not-allowed",
    "The path is not below one of the allowed roots",
    why="GROUNDSKEEPER_ALLOWED_ROOTS names the folders below which tables may lie, after links are resolved. Without "
    "this setting, a service that has tokens or can be reached from other machines allows no folder at all.",
    example="/etc/trips is not below any of the allowed roots",
    hint="An administrator can extend GROUNDSKEEPER_ALLOWED_ROOTS, for the service and for each worker.",
)
METASTORE_NOT_ALLOWED: Final = ProblemType(
    "metastore-not-allowed",
    "Jobs may not connect to this metastore",
    why="A sync connects to the metastore that its parameters or the policy name. Only hosts in the settings are "
    "allowed, since otherwise a caller could make the workers connect to any address.",
    example="metastore:9083 is not one of the allowed hosts.",
    hint="An administrator can extend GROUNDSKEEPER_METASTORE_HOSTS, for the service and for each worker.",
)
STORAGE_ACCOUNT: Final = ProblemType(
    "storage-account-unsuited",
    "The worker has another account for the table's bucket",
    why="Hadoop's s3a has one login for a whole bucket. A worker whose settings have several accounts for the bucket of"
    " the table, or one whose roots are elsewhere, would read and write the table as somebody else.",
    example="the bucket lake has 2 accounts in the worker's settings",
    hint="Start a worker of another group whose GROUNDSKEEPER_STORAGE_ACCOUNTS has only the account of this table for"
    " the bucket, and let the table's policy name that group.",
)
STORAGE_NOT_SUPPORTED: Final = ProblemType(
    "storage-not-supported",
    "Files cannot be rewritten on this storage",
    why="The scheme of the path is unknown, or an option of the storage has no counterpart in the clients with which"
    " the service reads without a JVM.",
    example="ftp://host/trips",
)
