"""Hudi's own clustering (1.2.0): its plans, and the execution of a plan that is on the timeline. The execution has two
steps, so that the files can be examined before the commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jobs.hudi import hashing_metadata, plan_checks, write_stats
from jobs.hudi.clustering_groups import SORT_AND_SIZE, ClusteringGroups
from jobs.hudi.indexes import require_state
from jobs.hudi.jvm import translated
from jobs.hudi.metadata_rollbacks import continued
from jobs.hudi.table import HudiTable
from jobs.hudi.write_stats import WriteStat
from jobs.tracing import span

_NO_INSTANT = "99991231235959999"


class Clusterings:
    """The clusterings of one client, with its `HoodieWriteConfig` and `SparkRDDWriteClient`; `indexes` are those for
    which it was opened (`indexes.state`)."""

    def __init__(self, table: HudiTable, config: Any, client: Any, indexes: frozenset[str]) -> None:
        self._table = table
        self._indexes = indexes
        self._config = config
        self._client = client

    def plan(self, *, executor: str = SORT_AND_SIZE) -> ClusteringGroups | None:
        """Returns a plan by the client's options, without writing it to the timeline; None if there is nothing to
        cluster. `executor` is the class of Hudi that will execute it."""
        self._table.reload()
        jvm = self._table.jvm
        with translated("planning the clustering"):
            context = jvm.engine_context
            table = jvm.hudi.table.HoodieSparkTable.create(self._config, context, self._table.meta)
            executors = jvm.hudi.table.action.cluster
            # The instant only limits incremental plans, which are switched off.
            planner = executors.ClusteringPlanActionExecutor(context, self._config, table, _NO_INSTANT, jvm.nothing())
            found = jvm.call_hidden(planner, "createClusteringPlan")
            return ClusteringGroups(self._table, self._config, found.get(), executor) if found.isPresent() else None

    def begin(self, instant: str) -> Any:
        """Starts to execute a plan, with a heartbeat, which Hudi's own runner does not send; the lock must be held. The
        methods below take the returned object. Raises the errors of `check_clustering`."""
        plan_checks.check_clustering(self._table, instant)
        with continued(self._table, instant), translated("beginning the clustering"):
            self._client.getHeartbeatClient().start(instant)
            return self._client.cluster(instant, False)

    def execute(self, begun: Any) -> list[WriteStat]:
        """Writes the new files of a plan; returns their statistics."""
        with translated("clustering"):
            return write_stats.written_by(self._table.jvm, self._client, begun)

    def present_schema(self, begun: Any) -> None:
        """Puts the table's current schema into the commit, in place of the schema at the moment when the plan was
        begun. Hudi 1.2.0 skips the schemas of clusterings (`TableSchemaResolver.canUpdateSchema`); other readers may
        take the schema of the last commit. The lock must be held."""
        self._table.reload()
        schema = self._table.schema()
        with translated("preparing the commit of the clustering"):
            begun.getCommitMetadata().get().addMetadata("schema", schema)

    def commit(self, instant: str, begun: Any) -> None:
        """Completes the instant, with the call that `BaseHoodieTableServiceClient.cluster` makes if it commits at once.
        Raises IndexesChangedError like the client's other commits."""
        self._table.reload()
        require_state(self._table, self._indexes)
        self._table.clock.reload()
        self._table.clock.verify(instant)
        jvm = self._table.jvm
        commit = span("commit", hudi__instant=instant)
        with translated("committing the clustering"), commit:
            table = jvm.hudi.table.HoodieSparkTable.create(self._config, jvm.engine_context, self._table.meta)
            services = self._client.getTableServiceClient()
            jvm.call_hidden(services, "commitClustering", begun, table, instant)
            self._client.getHeartbeatClient().stop(instant)

    def save_hashing(self, instant: str, groups: Sequence[Mapping[str, str]]) -> None:
        """See `hashing_metadata.save`."""
        self._table.reload()
        hashing_metadata.save(self._table, self._config, instant, groups)

    def renew_hashing(self, instant: str, gone: Mapping[str, Collection[str]]) -> None:
        """See `hashing_metadata.renew`."""
        self._table.reload()
        hashing_metadata.renew(self._table, self._config, instant, gone)

    def confirm_hashing(self, partitions: Sequence[str]) -> None:
        """See `hashing_metadata.confirm`."""
        hashing_metadata.confirm(self._table, self._config, partitions)
