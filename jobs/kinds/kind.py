"""The declaration of a kind of job."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from jobs.kinds.parameters import ByService, Parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.contract import JobKind
    from jobs.kinds.results import KindResult


@dataclass(frozen=True)
class Policy:
    """The part of a table's policy that decides about a kind.

    `turn`: of several kinds that are due the one with the lowest starts first. `summary` and `example` are for the
    member of the policy with the kind's name.
    """

    turn: int
    summary: str
    example: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """What a kind of job is. `title`, `letters` (two for a small field) and `summary` are for people.

    `params` are its parameters, `given_plans` those of a job that executes plans of Hudi, if they are others, and
    `result` is the type of its result. `example` is a request without its kind. `module` of `jobs.services` has its
    `run`; by default that of the same name.
    """

    kind: JobKind
    title: str
    letters: str
    summary: str
    params: type[Parameters]
    example: Mapping[str, Any] = field(default_factory=dict)
    given_plans: type[Parameters] | None = None
    module: str = ""
    result: type[KindResult] = field(kw_only=True)
    policy: Policy | None = None

    writes: bool = True
    """Whether it writes to the table, unless it runs dry."""
    has_plan: bool = True
    """A dry run tells something else than the job itself."""
    rewrites: bool = False
    """Whether it replaces file groups or makes them anew: at most one such job is active on a table, queued ones
    included."""
    stops_flink: bool = False
    """Whether it replaces or drops file groups, or takes commits away: a Flink job, which knows file groups by heart
    with every index, has to be stopped for it."""
    changes_bucket_number: bool = False
    examines: bool = False
    """Whether its result says what is damaged."""
    for_damaged: bool = False
    """Whether it is made for tables of which parts are missing."""
    needs_every_partition: bool = False
    """Whether it must not pass over a partition."""
    audited: bool = False
    """The checks of an audit that read no rows are made after it."""
    rolls_back_dead: bool = False
    """Whether it rolls back the writes of dead writers before its own work."""
    waits_for_repair: bool = False
    """Whether it must wait while rows are astray: they may be in the very files that it deletes or replaces, and a
    repair needs to know where they belong, by the timeline among other things."""
    connects_to_metastore: bool = False

    def read(self, given: Mapping[str, Any]) -> Parameters:
        """Returns the parameters of a work order. Raises ValueError; ignores unknown keys."""
        form = self.given_plans if self.given_plans and given.get("plans") else self.params
        return form.of(given)

    @property
    def type_name(self) -> str:
        """Returns the beginning of the names of its types: `BucketExpansion`."""
        return "".join(part.capitalize() for part in self.kind.value.split("_"))

    @property
    def can_do_without_params(self) -> bool:
        """Returns whether a request may leave out `params`. If there are two forms of them, it must choose one."""
        try:
            return self.given_plans is None and bool(self.params())
        except (TypeError, ValueError):
            return False

    def by_service(self) -> frozenset[str]:
        """Returns the names of the parameters that the service adds when a worker leases the job."""
        return _by_service(self.params)


@cache
def _by_service(params: type[Parameters]) -> frozenset[str]:
    hints = get_type_hints(params, include_extras=True)
    return frozenset(name for name, hint in hints.items() if ByService in getattr(hint, "__metadata__", ()))
