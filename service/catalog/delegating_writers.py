"""The options by which a writer delegates its table services to this service (Hudi 0.13 to 1.2, RFC-43)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import WriterEngine

if TYPE_CHECKING:
    from jobs.contract import BucketIndex

# With the manager on, "inline" means that the writer plans a compaction and asks the manager to execute it.
# `actions` must contain compaction, otherwise Hudi delegates nothing. It must not contain clean: a writer executes a
# pending clean itself with its next commit (`BaseHoodieTableServiceClient.clean`), so cleaning stays with this service.
_COMMON = {
    "hoodie.table.service.manager.enabled": "true",
    "hoodie.table.service.manager.actions": "compaction,clustering",
    # The writer holds the table's lock while it asks. The defaults are 300 s and 3 retries.
    "hoodie.table.service.manager.connection.timeout.sec": "10",
    "hoodie.table.service.manager.connection.retries": "5",
    "hoodie.table.service.manager.connection.retry.delay.sec": "1",
    # Its requests would go to http://localhost:9091, and the writer's commit fails if nobody answers there.
    "hoodie.metadata.table.service.manager.enabled": "false",
}
_PLANS_COMPACTION = {
    WriterEngine.SPARK: {"hoodie.compact.inline": "true"},
    WriterEngine.SPARK_SQL: {"hoodie.compact.inline": "true"},
    WriterEngine.FLINK: {"compaction.schedule.enabled": "true"},
}


def options(engine: WriterEngine, url: str) -> dict[str, str]:
    """`url` may have user info: Hudi's client replaces the path of the URL and keeps the rest."""
    return {**_COMMON, "hoodie.table.service.manager.uris": url, **_PLANS_COMPACTION[engine]}


def notes(engine: WriterEngine, index: BucketIndex | None) -> tuple[str, ...]:
    number = "compaction.delta_commits" if engine is WriterEngine.FLINK else "hoodie.compact.inline.max.delta.commits"
    found = [
        f"The writer plans a compaction every {number} commits (default 5) and this service executes it. Hudi logs the"
        " URL with its user info at INFO, so give the writer a key of its own.",
        "Do not delegate the metadata table in Hudi 1.2: its requests ignore hoodie.table.service.manager.uris and go"
        " to http://localhost:9091. Each job of this service that commits also executes the metadata table's plans.",
    ]
    if index:
        found.append("Do not plan clustering in the writer: it would break the bucket index. The plan is withheld.")
    else:
        found.append("To delegate clustering too, set hoodie.clustering.inline=true and the plan's options.")
    return tuple(found)
