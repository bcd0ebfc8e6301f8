"""Rewrites the clustering groups of one plan of Hudi, which is not on the timeline, for a `Replacement`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jobs.dataplane.key_digest import KeyDigest
from jobs.errors import refuse
from jobs.format.written_file import WrittenFile
from jobs.hudi import merging
from jobs.hudi.clustering_groups import ClusteringGroups
from jobs.hudi.plans import CLUSTERING_ACTIONS, COMPACTION_ACTIONS, held_by_plans
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds import results
from jobs.protocol.replacement_outcome import Replaced
from jobs.services.joining import Joining
from jobs.services.key_proof import KeyProof

HOLDING = COMPACTION_ACTIONS | CLUSTERING_ACTIONS
"""Actions whose pending plans keep file groups from being clustered."""

STRATEGY = "hoodie.clustering.plan.strategy"
PLANNING = {
    # A plan is made even without a commit since the last clustering, because that clustering may have been of other
    # partitions.
    "hoodie.clustering.async.max.commits": "0",
    "hoodie.clustering.inline.max.commits": "0",
    "hoodie.table.services.incremental.enabled": "false",
}
"""Options of a client that plans."""


class GroupRewrite:
    """Chooses and rewrites the file slices of the clustering groups of one plan."""

    def __init__(
        self, table: HudiTable, groups: ClusteringGroups, context: JobContext, joining: Joining | None = None
    ) -> None:
        self._context = context
        self._joining = joining
        self._table = table
        self._groups = groups
        self._proof = KeyProof()
        self._before: dict[int, KeyDigest] = {}

    def choose(self, slices: Sequence[FileSlice]) -> list[FileSlice]:
        """Returns the slices of the plan's file groups, except those that other pending plans read."""
        taken = held_by_plans(self._table, HOLDING)
        return [item for item in slices if item.key in self._groups.number_of and item.key not in taken]

    def unit(self, partition: str, file_id: str) -> tuple[str, str]:
        """Returns the clustering group of a file group."""
        return partition, str(self._groups.number_of[(partition, file_id)])

    def rewrite(
        self,
        instant: str,
        chosen: Sequence[FileSlice],
        everything: Sequence[FileSlice],  # noqa: ARG002 - of all rewriters
    ) -> list[WrittenFile]:
        """Writes the rows of whole clustering groups to new files of `instant`. Raises RowsDifferError."""
        by_group: dict[int, list[FileSlice]] = {}
        for item in chosen:
            by_group.setdefault(self._groups.number_of[item.key], []).append(item)
        joined = self._joining.join(instant, by_group, self._groups.outputs) if self._joining else {}
        for number, files in joined.items():
            self._before[number] = self._proof.of_join(files)
        rest = {number: slices for number, slices in by_group.items() if number not in joined}
        written = [file.written for files in joined.values() for file in files]
        return written + (self._by_hudi(instant, rest) if rest else [])

    def _by_hudi(self, instant: str, by_group: Mapping[int, Sequence[FileSlice]]) -> list[WrittenFile]:
        # A writer may have added logs since the job began.
        slices = [item for part in by_group.values() for item in part]
        refuse(merging.against_clustering_by_hudi(self._table, slices))
        self._table.reload()
        until = max(item.requested for item in self._table.instants())
        found = self._groups.execute(instant, by_group, until=until)
        self._context.step(f"comparing the record keys of {instant}")
        groups = [(by_group[number], stats) for number, stats in found.items()]
        digests = self._proof.of_rewrite(self._table, groups, self._context)
        written = []
        for (number, stats), (before, after) in zip(found.items(), digests, strict=True):
            self._before[number] = before
            source = by_group[number][0].file_id
            for stat, digest in zip(stats, after, strict=True):
                name = stat.path.rpartition("/")[2]
                written.append(
                    WrittenFile(stat.partition, source, stat.file_id, name, stat.rows, stat.bytes, str(digest))
                )
        return written

    def unfinished(self, replaced: Replaced) -> set[str]:
        """Returns the partitions with slices that were not replaced, although they were planned or could have been."""
        left = self._groups.number_of.keys() - replaced.file_groups
        return {partition for partition, _ in left} | self._groups.left_out

    @property
    def left_out(self) -> Collection[str]:
        """What the proof does not cover, in words for the job's result."""
        return self._proof.left_out

    def proof_of(self, replaced: Replaced) -> results.KeyProof:
        """Returns the proof that no row was lost or invented, for the job's result."""
        self._proof.before = KeyDigest.sum(
            self._before[number] for number in {self._groups.number_of[group] for group in replaced.file_groups}
        )
        return self._proof.proof
