"""/v1/tables"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Query, Response
from sqlalchemy import Connection

from jobs.contract import TableLock
from jobs.storage.location import plain
from service.access.errors import SecretKeyMissingError
from service.api.answers import PageOf
from service.api.dependencies import Caller, CallerDep, DatabaseDep, LakeDep
from service.api.entity_tags import set_tag
from service.api.query_parameters import Asked, Glob
from service.api.requests import SOME_TEXT, ReadersIn, TableChange, TableIn, WritersIn
from service.api.routes import Routes
from service.api.statuses import ACCEPTED, CREATED
from service.api.table_models import IndexOut, PollOut, TableDetected, TableOut
from service.catalog import snapshot_store, table_store, watch_store
from service.catalog.registration import Readers, Registration, Writers
from service.db.engine import reading, writing
from service.events.database import Database
from service.incidents import store
from service.model import storage_errors, table_errors
from service.observation.lake_access import LakeAccess
from service.queue import breaker_store
from service.queue.hand_over.flink_hosts import check_allowed
from service.registration import registry

router = Routes(prefix="/v1/tables", tags=["tables"])

TableId = Annotated[str, Path(max_length=64, pattern=SOME_TEXT, examples=["tbl_0f3c2a9d5e7b1c44"])]
EXAMINATION_ERRORS = (
    table_errors.OptionNotAllowedError,
    table_errors.LockUnavailableError,
    storage_errors.PathNotFoundError,
    table_errors.NotAHudiTableError,
    table_errors.TableUnsupportedError,
    storage_errors.StorageUnsupportedError,
    storage_errors.PathForbiddenError,
    table_errors.FlinkHostNotAllowedError,
    table_errors.BucketIndexContradictedError,
    storage_errors.StorageError,
    storage_errors.ReadersBusyError,
)
REGISTRATION_ERRORS = (*EXAMINATION_ERRORS, SecretKeyMissingError)


@router.admin(
    "POST ",
    "Register a Hudi table",
    *REGISTRATION_ERRORS,
    table_errors.TableAlreadyRegisteredError,
    operation_id="registerTable",
    status_code=CREATED,
)
def register(wanted: TableIn, database: DatabaseDep, lake: LakeDep, caller: CallerDep, response: Response) -> TableOut:
    """Detects the table's properties, and verifies its bucket index on sampled record keys. Only reads the table."""
    table = register_table(wanted, database, lake, caller)
    response.headers["Location"] = f"/v1/tables/{table.id}"
    return shown(database, table)


@router.admin("POST /detect", "Show what a registration would find", *EXAMINATION_ERRORS)
def detect_table(wanted: TableIn, database: DatabaseDep, lake: LakeDep, caller: CallerDep) -> TableDetected:
    """Reads the table as a registration does, with the same refusals, and stores nothing."""
    declared = _declarations(wanted, database, lake)
    found = registry.detect(database, lake, wanted.base_path, declared, allowed_roots=caller.roots(lake))
    table, index = found.examination, found.examination.index
    return TableDetected(
        name=wanted.name or table.name,
        base_path=table.base_path,
        index=IndexOut(num_buckets=index.num_buckets, hash_fields=list(index.hash_fields)) if index else None,
        profile=table.profile.to_json(),
        registered_as=found.registered_as,
    )


@router.reader("GET ", "List the registered tables, in the order of their registration")
def list_tables(
    database: DatabaseDep,
    *,
    name: Annotated[
        Glob | None,
        Query(description="A pattern of names with `*` and `?`, in upper or lower case", examples=["orders_*"]),
    ] = None,
    path: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=4096,
            pattern=SOME_TEXT,
            description="A base path, or a folder: lists the tables below it",
            examples=["s3a://lake/shop/"],
        ),
    ] = None,
    asked: Asked,
) -> PageOf[TableOut]:
    """`since` and `until` are times of registration."""
    with reading(database.engine) as connection:
        page = table_store.page(connection, asked, name=name, path=None if path is None else plain(path))
        items = _outs(connection, page.items)
    return PageOf[TableOut](items=items, next_cursor=page.next_cursor)


@router.reader("GET /{table_id}", "Show a table")
def get_table(table_id: TableId, database: DatabaseDep, response: Response) -> TableOut:
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "table", table_id)
        return _outs(connection, [table_store.get(connection, table_id)])[0]


@router.admin(
    "PATCH /{table_id}",
    "Change the declarations of a table",
    SecretKeyMissingError,
    table_errors.OptionNotAllowedError,
    table_errors.LockUnavailableError,
    storage_errors.PathForbiddenError,
    table_errors.FlinkHostNotAllowedError,
    table_errors.BucketIndexContradictedError,
    storage_errors.StorageError,
    storage_errors.ReadersBusyError,
)
def change_table(
    table_id: TableId, wanted: TableChange, database: DatabaseDep, lake: LakeDep, caller: CallerDep
) -> TableOut:
    """Verifies a new index on sampled record keys before it takes effect."""
    with reading(database.engine) as connection:
        stored = table_store.get(connection, table_id)
    changes = _changes(wanted, stored, database, lake)
    table = registry.change(database, lake, table_id, changes, allowed_roots=caller.roots(lake))
    lake.poll_requests.ask(table_id)
    return shown(database, table)


@router.operator("POST /{table_id}/poll", "Have a table polled now", status_code=ACCEPTED)
def poll_table(table_id: TableId, database: DatabaseDep, lake: LakeDep) -> PollOut:
    """Reads the table within moments, also one whose polls fail, and which is therefore polled ever less often; and
    has its jobs tried again that wait because earlier attempts failed. What the poll finds shows in the table's
    snapshot and problems."""
    with writing(database.engine) as connection:
        watch_store.get(connection, table_id)
        breaker_store.mended(connection, table_id, database.clock())
    database.notifier.notify()
    return PollOut(table_id=table_id, is_new=lake.poll_requests.ask(table_id, insists=True))


@router.admin("DELETE /{table_id}", "Unregister a table", table_errors.TableBusyError)
def unregister_table(table_id: TableId, database: DatabaseDep) -> None:
    """Deletes the registration and the ended jobs. Does not touch the table's data."""
    registry.unregister(database.engine, table_id)


def register_table(wanted: TableIn, database: Database, lake: LakeAccess, caller: Caller) -> Registration:
    declared = _declarations(wanted, database, lake)
    table = registry.register(database, lake, wanted.base_path, declared, allowed_roots=caller.roots(lake))
    lake.poll_requests.ask(table.id)
    return table


def _declarations(wanted: TableIn, database: Database, lake: LakeAccess) -> registry.Declarations:
    return registry.Declarations(
        name=wanted.name,
        index=wanted.index.to_contract() if wanted.index else None,
        lock=wanted.lock.to_contract(),
        writers=declared_writers(wanted.writers, Writers(), database, lake),
        readers=declared_readers(wanted.readers),
        hudi_options=wanted.hudi_options,
    )


def shown(database: Database, table: Registration) -> TableOut:
    with reading(database.engine) as connection:
        return _outs(connection, [table])[0]


def _outs(connection: Connection, tables: Sequence[Registration]) -> list[TableOut]:
    ids = [table.id for table in tables]
    sightings, counts = watch_store.engines(connection, ids), store.counts(connection, ids)
    clocks = snapshot_store.clocks(connection, ids)
    return [
        TableOut.of(table, sightings.get(table.id, {}), counts.get(table.id), clocks.get(table.id)) for table in tables
    ]


def declared_writers(wanted: WritersIn | None, stored: Writers, database: Database, lake: LakeAccess) -> Writers:
    """Returns the declared writers. Raises FlinkHostNotAllowedError."""
    if wanted is None:
        return Writers(engines_at=stored.engines_at)
    if wanted.flink:
        check_allowed(wanted.flink.rest_url, lake.flink_hosts)
    return wanted.to_model(stored, database.clock())


def declared_readers(wanted: ReadersIn | None) -> Readers:
    return Readers(wanted.hudi_version) if wanted else Readers()


def _changes(wanted: TableChange, stored: Registration, database: Database, lake: LakeAccess) -> dict[str, Any]:
    """Returns the members that were sent."""
    changes: dict[str, Any] = {}
    sent = wanted.model_fields_set
    if "name" in sent:
        changes["name"] = wanted.name
    if "index" in sent:
        changes["index"] = wanted.index.to_contract() if wanted.index else None
    if "lock" in sent:
        changes["lock"] = wanted.lock.to_contract() if wanted.lock else TableLock()
    if "writers" in sent:
        writers = declared_writers(wanted.writers, stored.writers, database, lake)
        # A new declaration of the engines discards earlier detections.
        declares_engines = wanted.writers is not None and wanted.writers.engines is not None
        changes["writers"] = replace(writers, engines_at=database.clock()) if declares_engines else writers
    if "readers" in sent:
        changes["readers"] = declared_readers(wanted.readers)
    if "hudi_options" in sent:
        changes["hudi_options"] = wanted.hudi_options or {}
    return changes
