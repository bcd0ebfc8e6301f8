"""The options by which a writer delegates its table services to this service (Hudi 0.13 to 1.2, RFC-43)."""

from __future__ import annotations

from jobs.contract import BucketIndex, WriterEngine
from service.lake.table import TableType

# If the manager is switched on, "inline" means that the writer plans a compaction and the manager executes it.
# `actions` must contain compaction, because otherwise Hudi delegates nothing. `actions` must not contain clean: a
# writer executes a pending clean itself with its next commit (`BaseHoodieTableServiceClient.clean`), so cleaning stays
# with this service.
_COMMON = {
    "hoodie.table.service.manager.enabled": "true",
    "hoodie.table.service.manager.actions": "compaction,clustering",
    # The time limit is far below the default of 300 s, because the writer holds the table's lock during the request.
    # Retries would have no effect: `RetryHelper` of Hudi 1.2.0 gets the name of an exception that it cannot load, and
    # so never retries.
    "hoodie.table.service.manager.connection.timeout.sec": "30",
    # Hudi 1.2.0 does not pass the options above to the client of the metadata table. Without this option, the client
    # there would call http://localhost:9091, and writes would fail because nothing answers.
    "hoodie.metadata.table.service.manager.enabled": "false",
}
_PLANS_COMPACTION = {
    WriterEngine.SPARK: {"hoodie.compact.inline": "true"},
    WriterEngine.SPARK_SQL: {"hoodie.compact.inline": "true"},
    WriterEngine.FLINK: {"compaction.schedule.enabled": "true"},
}


def options(engine: WriterEngine, url: str, table_type: TableType | None) -> dict[str, str]:
    """Returns the options; none without a URL. Hudi's client replaces the path of the URL, and keeps its user info.

    The options for a copy-on-write table plan no compactions, because their planning would fail.
    """
    if not url:
        return {}
    plans = {} if table_type is TableType.COPY_ON_WRITE else _PLANS_COMPACTION[engine]
    return {**_COMMON, "hoodie.table.service.manager.uris": url, **plans}


def notes(engine: WriterEngine, url: str, index: BucketIndex | None) -> tuple[str, ...]:
    if not url:
        return ()
    number = "compaction.delta_commits" if engine is WriterEngine.FLINK else "hoodie.compact.inline.max.delta.commits"
    found = [
        f"The writer plans a compaction every {number} commits (default 5), and this service executes the plan. Hudi"
        " logs the URL with its user info at the level INFO, so give each writer its own key.",
        "First repair Hudi 1.2.0's client in the driver, with the three lines of Python or Scala in the guide to"
        " delegated services. Otherwise each write fails after its commit: \"There's no default value for this config:"
        ' hoodie.table.service.manager.deploy.extra.params". Setting that option does not help.',
        "Do not switch hoodie.metadata.table.service.manager.enabled on: Hudi 1.2.0 sends these requests to"
        " http://localhost:9091, and every write fails because nothing answers there.",
        "If no service answers at the URL, a write fails after its commit: Hudi 1.2.0 does not repeat the request. Run"
        " several replicas of this service behind the URL.",
    ]
    if index:
        found.append(
            "Do not plan clustering in the writer: it would break the bucket index, so the plan is not executed."
        )
    else:
        found.append("To delegate clustering too, set hoodie.clustering.inline=true and the plan's options.")
    return tuple(found)
