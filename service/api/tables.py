"""/v1/tables"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response

from jobs.contract import TableLock
from service.access.token import Role
from service.api.dependencies import CallerDep, Parts, PartsDep, needs, roots_for
from service.api.requests import TableChange, TableIn, WritersIn
from service.api.responses import TableOut, TablePage
from service.api.statuses import CREATED, NOTHING, documented
from service.catalog import table_store, watch_store
from service.catalog.registration import Registration, Writers
from service.db.engine import reading
from service.hand_over.flink_hosts import check_allowed
from service.incidents import store
from service.model import errors
from service.model.secret import unmasked
from service.registration import registry

router = APIRouter(prefix="/v1/tables", tags=["tables"])

TableId = Annotated[str, Path(max_length=64, pattern=r"^[^\x00]+$", examples=["tbl_0f3c2a9d5e7b1c44"])]
Limit = Annotated[int, Query(ge=1, le=500, description="Most items of a page")]
CursorText = Annotated[str | None, Query(description="`next_cursor` of the page before")]


@router.post(
    "",
    operation_id="registerTable",
    summary="Register a Hudi table",
    status_code=CREATED,
    dependencies=[Depends(needs(Role.ADMIN))],
    responses=documented(
        errors.ParamsInvalidError,
        errors.PathNotFoundError,
        errors.NotAHudiTableError,
        errors.TableUnsupportedError,
        errors.StorageUnsupportedError,
        errors.PathForbiddenError,
        errors.FlinkHostNotAllowedError,
        errors.TableAlreadyRegisteredError,
        errors.BucketIndexContradictedError,
        errors.StorageError,
    ),
)
def register(wanted: TableIn, parts: PartsDep, caller: CallerDep, response: Response) -> TableOut:
    """Detects what the table is, and verifies its bucket index on sampled record keys. The table is only read."""
    table = registry.register(
        parts.engine,
        parts.bell,
        wanted.base_path,
        examine=parts.examine,
        allowed_roots=roots_for(parts, caller),
        storage_options=parts.storage_options,
        clock=parts.clock,
        name=wanted.name,
        claimed=wanted.index.to_contract() if wanted.index else None,
        lock=wanted.lock.to_contract(),
        writers=_declared(wanted.writers, Writers(), parts),
        hudi_options=wanted.hudi_options,
    )
    parts.hurry.ask(table.id)
    response.headers["Location"] = f"/v1/tables/{table.id}"
    return _shown(parts, table)


@router.get(
    "",
    operation_id="listTables",
    summary="List the registered tables",
    dependencies=[Depends(needs(Role.READER))],
    responses=documented(errors.ParamsInvalidError),
)
def list_tables(parts: PartsDep, limit: Limit = 100, cursor: CursorText = None) -> TablePage:
    with reading(parts.engine) as connection:
        page = table_store.page(connection, limit=limit, cursor=cursor)
        ids = [table.id for table in page.items]
        seen, counts = watch_store.engines(connection, ids), store.counts(connection, ids)
    items = [TableOut.of(table, seen.get(table.id, {}), counts.get(table.id)) for table in page.items]
    return TablePage(items=items, next_cursor=page.next_cursor)


@router.get(
    "/{table_id}",
    operation_id="getTable",
    summary="Show a table",
    dependencies=[Depends(needs(Role.READER))],
    responses=documented(errors.TableNotFoundError),
)
def get_table(table_id: TableId, parts: PartsDep) -> TableOut:
    with reading(parts.engine) as connection:
        seen, counts = watch_store.engines_of(connection, table_id), store.counts(connection, [table_id])
        return TableOut.of(table_store.get(connection, table_id), seen, counts.get(table_id))


@router.patch(
    "/{table_id}",
    operation_id="changeTable",
    summary="Change what is declared about a table",
    dependencies=[Depends(needs(Role.ADMIN))],
    responses=documented(
        errors.TableNotFoundError,
        errors.ParamsInvalidError,
        errors.PathForbiddenError,
        errors.FlinkHostNotAllowedError,
        errors.BucketIndexContradictedError,
        errors.StorageError,
    ),
)
def change_table(table_id: TableId, wanted: TableChange, parts: PartsDep, caller: CallerDep) -> TableOut:
    """A new index is verified on sampled record keys before it is taken over."""
    with reading(parts.engine) as connection:
        stored = table_store.get(connection, table_id)
    table = registry.change(
        parts.engine,
        table_id,
        _changes(wanted, stored, parts),
        examine=parts.examine,
        allowed_roots=roots_for(parts, caller),
        storage_options=parts.storage_options,
        clock=parts.clock,
    )
    parts.hurry.ask(table_id)
    return _shown(parts, table)


@router.delete(
    "/{table_id}",
    operation_id="unregisterTable",
    summary="Unregister a table",
    status_code=NOTHING,
    dependencies=[Depends(needs(Role.ADMIN))],
    responses=documented(errors.TableNotFoundError, errors.TableBusyError),
)
def unregister(table_id: TableId, parts: PartsDep) -> None:
    """Forgets the table and its ended jobs. The table's data is not touched."""
    registry.unregister(parts.engine, table_id)


def _shown(parts: Parts, table: Registration) -> TableOut:
    with reading(parts.engine) as connection:
        counts = store.counts(connection, [table.id])
        return TableOut.of(table, watch_store.engines_of(connection, table.id), counts.get(table.id))


def _declared(wanted: WritersIn | None, stored: Writers, parts: Parts) -> Writers:
    """Raises FlinkHostNotAllowedError."""
    if wanted is None:
        return Writers(engines_at=stored.engines_at)
    if wanted.flink:
        check_allowed(wanted.flink.rest_url, parts.flink_hosts)
    return wanted.to_model(stored, parts.clock())


def _changes(wanted: TableChange, stored: Registration, parts: Parts) -> dict[str, Any]:
    """Only the members that were sent."""
    changes: dict[str, Any] = {}
    sent = wanted.model_fields_set
    if "name" in sent:
        changes["name"] = wanted.name
    if "index" in sent:
        changes["index"] = wanted.index.to_contract() if wanted.index else None
    if "lock" in sent:
        lock = wanted.lock.to_contract() if wanted.lock else TableLock()
        changes["lock"] = TableLock(lock.provider, unmasked(lock.options, stored.lock.options))
    if "writers" in sent:
        writers = _declared(wanted.writers, stored.writers, parts)
        # What was seen before is over when the engines are said anew.
        says_engines = wanted.writers is not None and wanted.writers.engines is not None
        changes["writers"] = replace(writers, engines_at=parts.clock()) if says_engines else writers
    if "hudi_options" in sent:
        changes["hudi_options"] = unmasked(wanted.hudi_options or {}, stored.hudi_options)
    return changes
