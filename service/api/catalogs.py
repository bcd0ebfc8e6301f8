"""/v1/catalogs"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field

from jobs.contract import Problem, converted
from service.api.answers import Declared, ListOf
from service.api.dependencies import CatalogsDep, DatabaseDep, LakeDep
from service.api.discovery import ReasonOut
from service.api.errors import ServiceBusyError
from service.api.requests import NAME, Request
from service.api.routes import Routes
from service.api.structs import made
from service.registration.catalogs import rounds
from service.registration.catalogs.catalog import Catalog, CatalogKind, OnDropped, OnMoved, OnNew
from service.registration.catalogs.comparison import Finding
from service.registration.catalogs.errors import CatalogError, CatalogNotFoundError
from service.registration.catalogs.following import Report, counts, sync
from service.registration.catalogs.store import CatalogState

router = Routes(prefix="/v1", tags=["tables"])

Name = Annotated[str, Path(pattern=NAME, examples=["lake"])]


class CatalogFinding(Declared, declared=Finding):
    """A difference between a catalog and the registered tables."""

    reason: ReasonOut | None = Field(description="The problem that prevents the action; null if there is none")

    @classmethod
    def of(cls, found: Finding) -> CatalogFinding:
        return made(cls, found, reason=ReasonOut.of(found.reason) if found.reason else None)


class CatalogReport(BaseModel):
    """What a sync has found and done."""

    entries: int = Field(description="Tables of all kinds in the catalog that its patterns select", examples=[412])
    tables: int = Field(description="Hudi tables among them, one for each location", examples=[57])
    in_step: int = Field(description="Hudi tables that are registered at the catalog's location", examples=[55])
    counts: dict[str, int] = Field(description="Findings that the sync has not settled, by kind", examples=[{"new": 2}])
    findings: list[CatalogFinding] = Field(description="The differences, 500 at most")
    is_complete: bool = Field(
        description="False if a limit of number or time ended the sync; then nothing counts as dropped, and the next"
        " sync continues",
        examples=[True],
    )

    @classmethod
    def of(cls, found: Report) -> CatalogReport:
        some = [CatalogFinding.of(each) for each in found.findings[: rounds.MOST_FINDINGS]]
        return made(cls, found, counts=counts(found.findings), findings=some)

    @classmethod
    def kept(cls, found: dict[str, Any]) -> CatalogReport:
        """Returns the report of an earlier sync, from its stored form."""
        reasons = [{**each, "reason": _reason(each["reason"])} for each in found["findings"]]
        return made(cls, None, **{**found, "findings": reasons})


class CatalogOut(BaseModel):
    """A catalog of GROUNDSKEEPER_CATALOGS, without its secrets."""

    name: str = Field(description="Its name", examples=["lake"])
    kind: CatalogKind = Field(description="Kind of the catalog", examples=["glue"])
    address: str = Field(description="Its address", examples=["glue://glue.eu-central-1.amazonaws.com"])
    new: OnNew = Field(description="What happens to new tables", examples=["report"])
    moved: OnMoved = Field(description="What happens to tables whose location changes", examples=["report"])
    dropped: OnDropped = Field(description="What happens to tables that the catalog drops", examples=["report"])
    every_seconds: float = Field(description="Seconds between two syncs", examples=[3600])
    synced_at: datetime | None = Field(description="When the last successful sync ended")
    next_at: datetime | None = Field(description="When the next sync is due")
    failing_since: datetime | None = Field(description="Since when syncs fail; null if the last one did not fail")
    error: ReasonOut | None = Field(description="Why the last sync failed; null if it did not fail")
    report: CatalogReport | None = Field(description="What the last sync has found; null before the first")

    @classmethod
    def of(cls, catalog: Catalog, state: CatalogState | None) -> CatalogOut:
        known = state or CatalogState(catalog.name, datetime.min.replace(tzinfo=UTC))
        return made(
            cls,
            catalog,
            kind=catalog.source.kind,
            address=catalog.shown_address,
            synced_at=known.synced_at,
            next_at=state.next_at if state else None,
            failing_since=known.failing_since,
            error=ReasonOut.of(known.error) if known.error else None,
            report=CatalogReport.kept(known.report) if known.report else None,
        )


class CatalogSyncIn(Request, json_schema_extra={"examples": [{"dry_run": True}]}):
    dry_run: bool = Field(False, description="Only says what the sync would do", examples=[True])


@router.reader("GET /catalogs", "List the catalogs")
def list_catalogs(catalogs: CatalogsDep, database: DatabaseDep) -> ListOf[CatalogOut]:
    """The catalogs are declared by the setting GROUNDSKEEPER_CATALOGS."""
    states = rounds.states(database)
    return ListOf[CatalogOut].of(catalogs, lambda each: CatalogOut.of(each, states.get(each.name)))


@router.reader("GET /catalogs/{name}", "Show a catalog and its last sync", CatalogNotFoundError)
def get_catalog(name: Name, catalogs: CatalogsDep, database: DatabaseDep) -> CatalogOut:
    return CatalogOut.of(_named(catalogs, name), rounds.states(database).get(name))


@router.admin(
    "POST /catalogs/{name}/sync",
    "Compare a catalog with the registered tables, and follow it",
    CatalogNotFoundError,
    CatalogError,
    ServiceBusyError,
)
def sync_catalog(
    name: Name, wanted: CatalogSyncIn, catalogs: CatalogsDep, database: DatabaseDep, lake: LakeDep
) -> CatalogReport:
    """Does what the rules of the catalog say: registers new tables, and follows tables that have moved or were dropped.
    A dry run changes nothing. If a table is refused, the others continue. No table's data are ever touched."""
    catalog = _named(catalogs, name)
    if not rounds.turn.acquire(blocking=False):
        raise ServiceBusyError("Another sync of a catalog is running.")
    try:
        found = sync(database, lake, catalog, dry_run=True) if wanted.dry_run else rounds.run(database, lake, catalog)
    finally:
        rounds.turn.release()
    return CatalogReport.of(found)


def _named(catalogs: tuple[Catalog, ...], name: str) -> Catalog:
    found = next((each for each in catalogs if each.name == name), None)
    if found is None:
        raise CatalogNotFoundError(f"There is no catalog {name}.")
    return found


def _reason(kept: dict[str, Any] | None) -> ReasonOut | None:
    return ReasonOut.of(converted(kept, Problem)) if kept else None
