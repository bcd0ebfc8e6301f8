"""Removes from the timeline compaction plans that Hudi's `rollback` does not find. The lock must be held."""

from __future__ import annotations

from jobs.hudi.client_part import ClientPart
from jobs.hudi.jvm import translated
from jobs.hudi.metadata_rollbacks import continued
from jobs.hudi.plan_paths import check_plans


class PlanWithdrawal(ClientPart):
    """Takes back plans of Hudi (1.2.0)."""

    def revert(self, instant: str) -> None:
        """Makes an inflight compaction a requested one again, and removes its files (`rollbackInflightCompaction`)."""
        check_plans(self._table, "rollback")
        with continued(self._table, instant), translated(f"reverting the compaction {instant}"):
            jvm, meta = self._table.jvm, self._table.meta
            meta.reloadActiveTimeline()
            inflight = meta.getInstantGenerator().getCompactionInflightInstant(instant)
            table = jvm.hudi.table.HoodieSparkTable.create(self._config, jvm.engine_context, meta)
            table.rollbackInflightCompaction(inflight, self._client.getTransactionManager())

    def delete(self, instant: str) -> None:
        """Removes a requested compaction."""
        with translated(f"removing the plan of {instant}"):
            meta = self._table.meta
            requested = meta.getInstantGenerator().getCompactionRequestedInstant(instant)
            meta.reloadActiveTimeline().deleteCompactionRequested(requested)
