"""Problems of tables, their storage, locks and writers."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import Explanation

OF_TABLES: Final = {
    "option-not-allowed": Explanation(
        "Options of tables and locks reach Hudi's client on the workers. Those that name classes, files or addresses"
        " outside the table are taken only if the settings allow them, so that a registration cannot make a worker run"
        " foreign code or read foreign files.",
        "hudi_options.hoodie.write.commit.callback.class: is not allowed",
        {"errors": [{"field": "hudi_options.hoodie.write.commit.callback.class", "message": "is not allowed"}]},
    ),
    "lock-unavailable": Explanation(
        "The table's lock is kept by a server, such as ZooKeeper or DynamoDB, or by its storage, which did not answer."
        " Nothing can be committed without the lock, so nothing was changed.",
        "zk-1:2181 does not answer: connection refused",
    ),
    "flink-host-not-allowed": Explanation(
        "`writers.flink` asks the service to call the REST API of a Flink cluster, and the settings do not name its"
        " host."
        " Without such a list a registration could make the service call any address of its network.",
        "flink-jobmanager:8081 is not one of the allowed hosts.",
    ),
    "metastore-not-allowed": Explanation(
        "A sync connects to the Hive metastore that its parameters or the policy name. Only hosts of the settings are"
        " called, since otherwise a caller could make the workers connect to any address.",
        "metastore:9083 is not one of the allowed hosts.",
    ),
    "not-a-hudi-table": Explanation(
        "The folder exists, but it has no file `.hoodie/hoodie.properties`, or none that can be read as one. The"
        " path may"
        " be that of a partition, of the folder above several tables, or of a table of another format.",
        "/data/trips/2026 has no .hoodie/hoodie.properties",
    ),
    "path-not-found": Explanation(
        "The path leads to nothing, or the account of the service may not list what is above it: some storages answer"
        " both cases alike.",
        "/data/trips does not exist",
    ),
    "path-not-allowed": Explanation(
        "GROUNDSKEEPER_ALLOWED_ROOTS names the folders below which tables may lie, after links are resolved. Without it"
        " a service that has tokens, or can be reached from other machines, allows none.",
        "/etc/trips is not below any of the allowed roots",
    ),
    "path-outside-table": Explanation(
        "A link, a property or the metadata of a commit names a file that is not below the table's base path. Hudi"
        " writes"
        " no such thing, so it is either a mistake of an operator or an attempt to have foreign files read or deleted.",
        "/data/trips/2026 leads to /etc",
    ),
    "storage-not-supported": Explanation(
        "The scheme of the path is unknown, or an option of the storage has no counterpart in the clients with which"
        " the"
        " service reads without a JVM.",
        "ftp://host/trips",
    ),
    "storage-error": Explanation(
        "The storage answered with an error, or not at all. It says nothing about the table itself.",
        "s3a://lake/orders/.hoodie: timed out after 10 s",
    ),
    "storage-login-failed": Explanation(
        "The storage does not accept the credentials: a key that it does not know, a wrong secret, a token that has"
        " expired, or none at all. With Kerberos the process has no ticket that is valid now and no keytab to get one."
        " No attempt with the same credentials succeeds, so none is made.",
        "hdfs://namenode/lake/orders: no ticket",
    ),
    "storage-access-denied": Explanation(
        "The storage knows who asks, and does not allow it: the permissions of a folder, a policy of the bucket, or an"
        " access control list. A storage that answers 403 without a reason may mean the credentials as well. The"
        " workers may be another user than the service. No attempt succeeds before somebody allows it, so none is"
        " made.",
        "s3a://lake/orders/.hoodie/lock: PUT: Access Denied (status code 403)",
    ),
    "storage-unknown": Explanation(
        "The storage has no bucket, container or file system of that name, or the name of its host has no address. A"
        " name server that is away looks like the latter, so a job that met that is tried again.",
        "s3a://lkae/orders: NoSuchBucket: The specified bucket does not exist",
    ),
    "table-too-slow": Explanation(
        "A read of the table, of its listings or its timeline, took longer than its limit and was ended. Storages"
        " that do"
        " not answer are the usual cause, and after that folders with very many files.",
        "Reading the table took longer than 30 seconds.",
    ),
    "table-not-readable": Explanation(
        "Files of tables are parsed in processes of their own, because their bytes may come from anybody. This one"
        " ended"
        " by a crash or by its limit of memory.",
        "The process that read the table ended by SIGKILL.",
    ),
    "look-failed": Explanation(
        "The poll of the table's timeline ended by an error that is not one of the storage or of the table; this is an"
        " error of Groundskeeper.",
        "KeyError",
    ),
    "table-not-supported": Explanation(
        "The table has a version, a type, a file format or an index for which it is not proved that every service"
        " leaves"
        " its rows right.",
        "Table version 5",
    ),
    "flink-error": Explanation(
        "The Flink cluster of `writers.flink` did not answer, knows no such job, or could not take a savepoint.",
        "http://flink-jobmanager:8081 knows no running job named orders-ingest.",
    ),
    "table-already-registered": Explanation(
        "A table is registered once. The base path is compared after `..` and links are resolved, so another"
        " spelling is"
        " the same table. `table_id` is its id; PUT /v1/tables/by-path accepts the repetition.",
        "/data/trips is registered as tbl_0f3c2a9d5e7b1c44.",
        {"table_id": "tbl_0f3c2a9d5e7b1c44"},
    ),
    "bucket-index-contradicted": Explanation(
        "The service hashes record keys of a few base files and compares the buckets with those of the files. They"
        " do not"
        " agree with the claimed number of buckets and fields, and an expansion with wrong rules would duplicate rows.",
        "37 of 40 sampled keys are in other buckets.",
        {"sampled": 40, "contradicting": 37},
    ),
    "table-busy": Explanation(
        "A table with queued or running jobs is not unregistered: a worker would go on changing it, and nobody would"
        " know.",
        "orders has 1 active job: job_4be1c0d2f6a89b37.",
        {"job_ids": ["job_4be1c0d2f6a89b37"]},
    ),
    "job-conflict": Explanation(
        "On one table at most one job of each kind is active, and at most one of those that replace file groups,"
        " such as"
        " compaction, clustering and expansion: they would undo each other's work.",
        "Job job_4be1c0d2f6a89b37 (compaction) is running.",
        {"job_id": "job_4be1c0d2f6a89b37"},
    ),
    "incident-open": Explanation(
        "A commit wrote rows to file groups that had been replaced, where no reader sees them. Cleaning, archival and"
        " some other jobs would delete the files from which a repair brings them back.",
        "1 incident of this table is open.",
        {"incident_ids": ["inc_8c1d0e5f2a7b4963"]},
    ),
    "incident-already-closed": Explanation(
        "The incident was repaired by a job, or somebody closed it before this call; an incident is closed once.",
        "inc_8c1d0e5f2a7b4963 is repaired: 20260101120030000 brought its rows over",
    ),
    "job-not-waiting": Explanation(
        "A confirmation that writers were stopped counts only for a job that waits for that. It has gone on meanwhile,"
        " has ended, or never needed it.",
        "job_4be1c0d2f6a89b37 is running.",
    ),
    "flink-state-returns": Explanation(
        "With `FLINK_STATE`, Flink's default index, the state of the job says which file group a key is in. The waiting"
        " job replaces file groups, and from a savepoint or checkpoint the old ones would come back: Hudi commits what"
        " is written to them, and no reader sees it.",
        "s3a://lake/orders has no declared bucket index.",
    ),
    "fence-loses-flink-batches": Explanation(
        "Fencing rolls back the write that is in flight. Spark writes its batch again, but a Flink job has already"
        " completed its checkpoint, so the rows of the batch would be lost.",
        "flink writes the table.",
    ),
    "job-already-ended": Explanation(
        "The job succeeded, failed or was cancelled before this call; what it committed stays.",
        "job_4be1c0d2f6a89b37 is succeeded.",
    ),
    "lease-lost": Explanation(
        "A job belongs to one attempt of one worker. The lease expired without a heartbeat and another attempt may have"
        " it, or the job has ended, so that a late report must change nothing.",
        "Attempt 1 of job_4be1c0d2f6a89b37 is over.",
    ),
    "lock-free": Explanation(
        "The call asked to break the lock of a table, and by then nobody held it: its holder may have given it back"
        " since the caller looked.",
        "/data/orders/.hoodie/.locks/lock is not there.",
    ),
    "lock-not-removable": Explanation(
        "The lock is kept by a server for which the service has no client, such as ZooKeeper, DynamoDB or a Hive"
        " metastore. Such a server ends a dead holder's lock by itself, or its own tools can remove it.",
        "ZooKeeper ends it when the session of its holder ends.",
    ),
    "lock-ends-by-itself": Explanation(
        "The lock has an end that its holder has to move on all the time, so a dead holder's lock ends without anyone's"
        " help, and one that goes on has a holder that is alive.",
        "It ends 40 s from now, at 2026-03-01T10:20:30+00:00, unless its holder renews it.",
        {"ends_at": "2026-03-01T10:20:30Z"},
    ),
    "lock-too-young": Explanation(
        "A writer that pauses for minutes, such as in a garbage collection, looks just like a dead one. So only a lock"
        " that has been held for far longer than any pause is broken.",
        "It has been held for 12 min by a writer that did not sign it; it may be broken after 1 h.",
        {"breakable_at": "2026-03-01T11:08:00Z"},
    ),
    "lock-held-by-job": Explanation(
        "The lock is signed by a job of this service that runs now. A job gives its lock back when it ends, also when"
        " it is cancelled, and the next attempt removes that of a worker that died.",
        "Compaction job job_4be1c0d2f6a89b37 on worker host-4711-1f0c2a signed it.",
        {"job_id": "job_4be1c0d2f6a89b37"},
    ),
    "writers-alive": Explanation(
        "An instant of the table has had a heartbeat within five minutes, so its writer is alive. Hudi does not sign"
        " its lock, so it may be this writer's, and a broken lock would let two write at once.",
        "The last heartbeat of 20260301102000123 was 20 s ago.",
        {"instants": ["20260301102000123"]},
    ),
    "lock-changed": Explanation(
        "The call named the lock that its caller had seen (`lock_id`), and by now another holder has taken the lock"
        " anew. What was known about the former holder says nothing about this one.",
        "It was released or taken again while it was looked at.",
    ),
}
