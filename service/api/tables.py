"""/v1/tables, and /v1/tables/by-path for tools such as Terraform, which declare the registration that should exist"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from sqlalchemy import Connection

from jobs.contract import TableLock
from jobs.storage.location import plain
from service.access.errors import SecretKeyMissingError, SecretUnreadableError
from service.api.answers import PageOf
from service.api.audit_objects import declared, read
from service.api.dependencies import Caller, CallerDep, DatabaseDep, LakeDep
from service.api.entity_tags import Condition, check, condition_of, set_tag, tag_of
from service.api.query_parameters import Asked, Glob, OfOwners
from service.api.requests import SOME_TEXT, TableChange, TableIn
from service.api.routes import Routes
from service.api.statuses import ACCEPTED, CREATED
from service.api.structs import struct_of
from service.api.table_models import IndexOut, PollOut, TableDetected, TableOut
from service.catalog import snapshot_store, table_secrets, table_store, watch_store
from service.catalog.registration import Readers, Registration, Writers
from service.db import audit_record
from service.db.documents import AtOnce
from service.db.engine import reading, writing
from service.events.database import Database
from service.incidents import store
from service.lake.location import canonical
from service.model import storage_errors, table_errors
from service.observation.lake_access import LakeAccess
from service.queue import breaker_store
from service.queue.hand_over.flink_hosts import check_allowed
from service.registration import registry

router = Routes(prefix="/v1/tables", tags=["tables"])

TableId = Annotated[str, Path(max_length=64, pattern=SOME_TEXT, examples=["tbl_0f3c2a9d5e7b1c44"])]
STORAGE_ERRORS = (storage_errors.PathForbiddenError, storage_errors.StorageError, storage_errors.ReadersBusyError)
READING_ERRORS = (
    table_errors.OptionNotAllowedError,
    storage_errors.PathNotFoundError,
    table_errors.NotAHudiTableError,
    table_errors.TableUnsupportedError,
    storage_errors.StorageUnsupportedError,
    *STORAGE_ERRORS,
)
_DECLARATION_ERRORS = (
    table_errors.LockUnavailableError,
    table_errors.FlinkHostNotAllowedError,
    table_errors.BucketIndexContradictedError,
)
_EXAMINATION_ERRORS = (*READING_ERRORS, *_DECLARATION_ERRORS)
REGISTRATION_ERRORS = (*_EXAMINATION_ERRORS, SecretKeyMissingError)


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


@router.admin("POST /detect", "Show what a registration would find", *_EXAMINATION_ERRORS)
def detect_table(wanted: TableIn, database: DatabaseDep, lake: LakeDep, caller: CallerDep) -> TableDetected:
    """Reads the table as a registration does, with the same refusals, and stores nothing."""
    declared = registry.Declarations(**_declared(wanted, Writers(), database, lake))
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
    selection: OfOwners,
    asked: Asked,
) -> PageOf[TableOut]:
    """`since` and `until` are times of registration."""
    with reading(database.engine) as connection:
        below = None if path is None else plain(path)
        page = table_store.page(connection, asked, name=name, path=below, selection=selection)
        items = _outs(connection, page.items)
    return struct_of(PageOf[TableOut])(items=items, next_cursor=page.next_cursor)


@router.reader("GET /{table_id}", "Show a table")
def get_table(table_id: TableId, database: DatabaseDep, response: Response) -> TableOut:
    with reading(database.engine) as connection:
        table = table_store.get(connection, table_id)
        response.headers["ETag"] = tag_of(declared(table))
        return _outs(connection, [table])[0]


@router.admin(
    "PUT /by-path",
    "Register a table, or change it to these declarations",
    *REGISTRATION_ERRORS,
    also={CREATED: "No table was registered with this base path before"},
)
def put_table_by_path(
    wanted: TableIn, *, database: DatabaseDep, lake: LakeDep, caller: CallerDep, request: Request, response: Response
) -> TableOut:
    """If the same body is sent again, nothing changes, and the same table is returned. The base path may be spelled in
    any way. If `name` and `index` are left out, they keep their detected values; all other members get their
    defaults."""
    base_path = lake.readers.run(canonical, wanted.base_path)
    condition = condition_of("PUT", request.headers)
    with reading(database.engine) as connection:
        table_id = table_store.find(connection, base_path)
    if table_id is None:
        check(condition, (None, None), creates=True)
        try:
            table = register_table(wanted, database, lake, caller)
        except table_errors.TableAlreadyRegisteredError as error:
            # Another call has registered the table meanwhile.
            table_id = str(error.extensions["table_id"])
        else:
            response.status_code = CREATED
            response.headers["Location"] = f"/v1/tables/{table.id}"
            return shown(database, table)
    table = _changed(table_id, wanted, database=database, lake=lake, caller=caller, condition=condition)
    response.headers["Location"] = f"/v1/tables/{table_id}"
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "table", table_id)
    return shown(database, table)


def _changed(
    table_id: str, wanted: TableIn, *, database: Database, lake: LakeAccess, caller: Caller, condition: Condition
) -> Registration:
    with reading(database.engine) as connection:
        stored = table_store.get(connection, table_id)
        check(condition, read(connection, database.cipher, "table", table_id), creates=True)
    audit_record.exists("table", table_id)
    changes = _differences(wanted, stored, database, lake)
    if not changes:
        return stored
    table = registry.change(database, lake, table_id, changes, allowed_roots=caller.roots(lake))
    lake.poll_requests.ask(table_id)
    return table


@router.admin(
    "PATCH /{table_id}",
    "Change the declarations of a table",
    SecretKeyMissingError,
    table_errors.OptionNotAllowedError,
    *_DECLARATION_ERRORS,
    *STORAGE_ERRORS,
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
    """Polls the table within moments, even if its polls are delayed because they fail. Jobs that wait because earlier
    attempts failed are tried again. The table's snapshot and problems show what the poll has found."""
    with writing(database.engine) as connection:
        watch_store.get(connection, table_id)
        breaker_store.mended(connection, table_id, database.clock())
    database.notifier.notify()
    return PollOut(table_id=table_id, is_new=lake.poll_requests.ask(table_id, insists=True))


@router.admin("DELETE /{table_id}", "Unregister a table", table_errors.TableBusyError)
def unregister_table(table_id: TableId, database: DatabaseDep) -> None:
    """Deletes the registration and the ended jobs. The table's data stay untouched."""
    registry.unregister(database.engine, table_id)


def register_table(wanted: TableIn, database: Database, lake: LakeAccess, caller: Caller) -> Registration:
    declared = declarations(wanted, database, lake)
    table = registry.register(database, lake, wanted.base_path, declared, allowed_roots=caller.roots(lake))
    lake.poll_requests.ask(table.id)
    return table


def declarations(wanted: TableIn, database: Database, lake: LakeAccess) -> registry.Declarations:
    """Raises FlinkHostNotAllowedError."""
    return registry.Declarations(**_declared(wanted, Writers(), database, lake))


def shown(database: Database, table: Registration) -> TableOut:
    with reading(database.engine) as connection:
        return _outs(connection, [table])[0]


_SHOWN = AtOnce(watch_store.ENGINES, store.COUNTS, snapshot_store.CLOCKS)


def _outs(connection: Connection, tables: Sequence[Registration]) -> list[TableOut]:
    ids = [table.id for table in tables]
    sightings, counts, clocks = _SHOWN.read(connection, {"of_tables": ids})
    return [
        TableOut.of(table, sightings.get(table.id, {}), counts.get(table.id), clocks.get(table.id)) for table in tables
    ]


def _changes(wanted: TableChange, stored: Registration, database: Database, lake: LakeAccess) -> dict[str, Any]:
    """Returns the members that were sent."""
    declared = _declared(wanted, stored.writers, database, lake)
    changes = {name: value for name, value in declared.items() if name in wanted.model_fields_set}
    # A new declaration of the engines discards earlier detections.
    if wanted.writers is not None and wanted.writers.engines is not None:
        changes["writers"] = replace(changes["writers"], engines_at=database.clock())
    return changes


def _differences(wanted: TableIn, stored: Registration, database: Database, lake: LakeAccess) -> dict[str, Any]:
    """Returns the members that differ from what is stored. A masked value stands for the stored one."""
    declared = _declared(wanted, Writers(), database, lake)
    lock, writers = declared["lock"], declared["writers"]
    same = {
        "name": wanted.name in (None, stored.name),
        "index": wanted.index is None or declared["index"] == stored.index,
        "lock": replace(lock, options={}) == replace(stored.lock, options={})
        and _are_same(lock.options, stored.lock.options, database),
        "writers": _without_times(writers) == _without_times(stored.writers),
        "readers": declared["readers"] == stored.readers,
        "hudi_options": _are_same(wanted.hudi_options, stored.hudi_options, database),
        "owner": wanted.owner == stored.owner,
        "tags": wanted.tags == stored.tags,
    }
    # Only a new declaration of the engines discards earlier detections.
    declares_engines = writers.engines is not None and writers.engines != stored.writers.engines
    engines_at = database.clock() if declares_engines else stored.writers.engines_at
    declared["writers"] = replace(writers, engines_at=engines_at)
    return {name: value for name, value in declared.items() if not same[name]}


def _declared(wanted: TableIn | TableChange, before: Writers, database: Database, lake: LakeAccess) -> dict[str, Any]:
    """Returns the members of a registration that declare something, by name. `before` are the writers as declared so
    far. Raises FlinkHostNotAllowedError."""
    writers = Writers(engines_at=before.engines_at)
    if wanted.writers is not None:
        if wanted.writers.flink:
            check_allowed(wanted.writers.flink.rest_url, lake.flink_hosts)
        writers = wanted.writers.to_model(before, database.clock())
    return {
        "name": wanted.name,
        "index": wanted.index.to_contract() if wanted.index else None,
        "lock": wanted.lock.to_contract() if wanted.lock else TableLock(),
        "writers": writers,
        "readers": Readers(**wanted.readers.model_dump()) if wanted.readers else Readers(),
        "hudi_options": wanted.hudi_options or {},
        "owner": wanted.owner,
        "tags": wanted.tags or {},
    }


def _without_times(writers: Writers) -> Writers:
    return replace(writers, declared_at=None, engines_at=None)


def _are_same(sent: Mapping[str, str], stored: Mapping[str, str], database: Database) -> bool:
    if sent.keys() != stored.keys():
        return False
    new = table_secrets.without_masks(sent, stored)
    try:
        return table_secrets.opened(database.cipher, {key: stored[key] for key in new}) == new
    except SecretUnreadableError:
        # The stored secret cannot be read, so the sent value counts as a change: storing it makes the secret readable.
        return False
