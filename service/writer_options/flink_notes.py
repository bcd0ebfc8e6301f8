"""Notes for users about the needs of a Flink writer that options cannot express."""

from __future__ import annotations

from service.writer_options.written_table import Target

# A Flink job without a bucket index has the file groups of keys in its state. Without this option, a Flink job that
# starts without that state would write existing keys of the table a second time.
LOADED_INDEX = {"index.bootstrap.enabled": "true"}


def of(target: Target) -> list[str]:
    notes = [
        "Set pekko.ask.timeout to 60 s in the Flink cluster. Its coordinator may wait for the table's lock in a call"
        " that has a time limit of 10 s by default. If the wait lasts longer, the Flink job fails over.",
        "No other writer may change the same rows at the same time, because Flink with single_writer does not check for"
        " conflicts. Flink with optimistic_concurrency_control would conflict with itself and lose rows.",
        "Flink ignores hoodie.write.num.retries.on.conflict.failures. If a batch of a Flink job is rolled back after"
        " its checkpoint, the batch is lost. So Groundskeeper never fences a Flink writer.",
    ]
    if target.has_consistent_hashing:
        notes.append("A bucket_resize is refused as long as Flink may write the table: Flink keeps its hash ranges.")
    if (target.index or target.has_consistent_hashing) and not target.is_non_blocking:
        notes.append(
            "A Flink job reads the number of buckets and the file groups only once. A bucket expansion or a"
            " clustering waits until the job has been stopped with a savepoint (see `writers.flink` of"
            " the table, and POST /v1/jobs/{id}/writers-stopped). Afterwards submit it again with the options shown"
            " then."
        )
    elif not target.index and not target.has_consistent_hashing:
        notes.append(
            "Without a bucket index the state of a Flink job holds the file group of each key (FLINK_STATE, its "
            "default), in savepoints and checkpoints as well. A clustering, a repair or any other job that replaces "
            "file groups waits until the Flink job has been stopped. Afterwards start it without that state: with "
            f"{next(iter(LOADED_INDEX))}=true and no savepoint; or from the savepoint with another name for the table "
            "in Flink SQL and execution.state-recovery.ignore-unclaimed-state=true, which keeps the source's offsets."
        )
    return notes
