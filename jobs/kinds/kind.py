"""The declaration of a kind of job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, get_type_hints

from jobs.contract import JobKind
from jobs.kinds.parameters import ByService, Parameters
from jobs.kinds.results import KindResult


class WorksOn(StrEnum):
    """The files of a table that a job reads or deletes."""

    EVERYTHING = "everything"
    LOGGED = "logged"  # File slices with logs.
    OUT_OF_USE = "out_of_use"  # Files that belong to no latest file slice.
    TIMELINE = "timeline"  # No files, or so few that the job's time does not depend on them.


@dataclass(frozen=True)
class Policy:
    """The part of a table's policy that decides about a kind.

    `turn`: if several kinds are due, the one with the lowest number starts first. `summary` and `example` document the
    member of the policy with the kind's name.
    """

    turn: int
    summary: str
    example: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """What a kind of job is. `title`, `letters` (an abbreviation of two letters) and `summary` are for people. `params`
    is the type of its parameters, `result` the type of its result. `delegated_plans` is the type of the parameters of
    a job that executes given plans of Hudi, if that type differs. `example` is the body of a request without `kind`.
    `module` is the name of the module of `jobs.services` that has its `run`; the default is the kind's name."""

    kind: JobKind
    title: str
    letters: str
    summary: str
    params: type[Parameters]
    example: Mapping[str, Any] = field(default_factory=dict)
    delegated_plans: type[Parameters] | None = None
    module: str = ""
    result: type[KindResult] = field(kw_only=True)
    policy: Policy | None = None

    works_on: WorksOn = WorksOn.TIMELINE
    """The files on whose size and number the job's time depends."""
    writes: bool = True
    """Whether the job writes to the table, except in a dry run."""
    has_plan: bool = True
    """Whether a dry run returns other information than the job itself."""
    rewrites: bool = False
    """Whether the job rewrites or replaces file groups. At most one such job is active on a table, including queued
    jobs."""
    stops_flink: bool = False
    """Whether the job replaces or drops file groups, or removes commits. Flink jobs must be stopped before it, because
    they keep file groups in memory, whatever the index."""
    refuses_flink: bool = False
    """Whether the job refuses every table that Flink may write, so that nobody has to stop Flink for it."""
    changes_bucket_number: bool = False
    examines: bool = False
    """Whether the result lists damages."""
    for_damaged: bool = False
    """Whether the job also runs on tables with missing parts."""
    needs_partitions: bool = False
    """Whether the job can do nothing on a table without partitions."""
    needs_every_partition: bool = False
    """Whether the job must not overlook a partition."""
    audited: bool = False
    """Whether the checks of an audit that read no rows follow the job."""
    rolls_back_dead: bool = False
    """Whether the job rolls back the writes of dead writers before its own work."""
    waits_for_repair: bool = False
    """Whether the job must wait while stale writes are not repaired. It could delete or replace the files that hold the
    rows of these writes, or remove the instants from which a repair learns where the rows belong."""
    ends_with_instant: bool = True
    """Whether the job's work is done when the last instant that it reported has completed. If not, only another attempt
    can find out what is left to do."""
    connects_to_metastore: bool = False
    may_merge: bool = True
    """Whether Hudi may merge or index rows in the job. Hudi's client then has to know whether rows of logs may be
    deletes (`OpenedTable.records_operations`), and the newest file is read for that."""

    def read(self, given: Mapping[str, Any]) -> Parameters:
        """Returns the parameters of a work order. Raises ValueError; ignores unknown keys."""
        form = self.delegated_plans if self.delegated_plans and given.get("plans") else self.params
        return form.of(given)

    @property
    def type_name(self) -> str:
        """Returns the prefix of the names of its types, such as `BucketExpansion`."""
        return "".join(part.capitalize() for part in self.kind.value.split("_"))

    @property
    def can_do_without_params(self) -> bool:
        """Returns whether a request may omit `params`. A kind with two types of parameters needs them, because the
        request must choose one."""
        try:
            return self.delegated_plans is None and bool(self.params())
        except (TypeError, ValueError):
            return False

    def by_service(self) -> frozenset[str]:
        """Returns the names of the parameters that the service adds when a worker leases the job."""
        return _by_service(self.params)


@cache
def _by_service(params: type[Parameters]) -> frozenset[str]:
    hints = get_type_hints(params, include_extras=True)
    return frozenset(name for name, hint in hints.items() if ByService in getattr(hint, "__metadata__", ()))
