"""Registration as a declared state, for tools such as Terraform: /v1/tables/by-path"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from service.access.errors import SecretUnreadableError
from service.api import entity_tags, tables
from service.api.audit_objects import look
from service.api.dependencies import Caller, CallerDep, DatabaseDep, LakeDep
from service.api.requests import TableIn
from service.api.routes import Routes
from service.api.statuses import CREATED
from service.api.table_models import TableOut
from service.catalog import table_secrets, table_store
from service.catalog.registration import Registration, Writers
from service.db import audit_record
from service.db.engine import reading
from service.events.database import Database
from service.lake.location import canonical
from service.model import table_errors
from service.observation.lake_access import LakeAccess
from service.registration import registry

router = Routes(prefix="/v1/tables", tags=["tables"])


@router.admin(
    "PUT /by-path",
    "Register a table, or change it to these declarations",
    *tables.REGISTRATION_ERRORS,
    also={CREATED: "No table was registered with this base path before"},
)
def put_table_by_path(
    wanted: TableIn, *, database: DatabaseDep, lake: LakeDep, caller: CallerDep, request: Request, response: Response
) -> TableOut:
    """The same body again changes nothing, and returns the same table. The base path may be spelt in any way. `name`
    and `index` keep their values if left out, as they were detected; everything else gets its default then."""
    base_path = lake.readers.run(canonical, wanted.base_path)
    condition = request.headers.get("if-match")
    with reading(database.engine) as connection:
        table_id = table_store.find(connection, base_path)
    if table_id is None:
        entity_tags.check(condition, (None, None), creates=True)
        try:
            table = tables.register_table(wanted, database, lake, caller)
        except table_errors.TableAlreadyRegisteredError as error:
            # Another call has registered it meanwhile.
            table_id = str(error.extensions["table_id"])
        else:
            response.status_code = CREATED
            response.headers["Location"] = f"/v1/tables/{table.id}"
            return tables.shown(database, table)
    table = _changed(table_id, wanted, database=database, lake=lake, caller=caller, condition=condition)
    response.headers["Location"] = f"/v1/tables/{table_id}"
    with reading(database.engine) as connection:
        entity_tags.set_tag(response, connection, database.cipher, "table", table_id)
    return tables.shown(database, table)


def _changed(
    table_id: str, wanted: TableIn, *, database: Database, lake: LakeAccess, caller: Caller, condition: str | None
) -> Registration:
    with reading(database.engine) as connection:
        stored = table_store.get(connection, table_id)
        entity_tags.check(condition, look(connection, database.cipher, "table", table_id), creates=True)
    audit_record.exists("table", table_id)
    changes = _differences(wanted, stored, database, lake)
    if not changes:
        return stored
    table = registry.change(database, lake, table_id, changes, allowed_roots=caller.roots(lake))
    lake.poll_requests.ask(table_id)
    return table


def _differences(wanted: TableIn, stored: Registration, database: Database, lake: LakeAccess) -> dict[str, Any]:
    """Returns the members that differ from what is stored. A masked value stands for the stored one."""
    changes: dict[str, Any] = {}
    if wanted.name is not None and wanted.name != stored.name:
        changes["name"] = wanted.name
    if wanted.index is not None and (index := wanted.index.to_contract()) != stored.index:
        changes["index"] = index
    lock = wanted.lock.to_contract()
    if replace(lock, options={}) != replace(stored.lock, options={}) or not _are_same(
        lock.options, stored.lock.options, database
    ):
        changes["lock"] = lock
    if not _are_same(wanted.hudi_options, stored.hudi_options, database):
        changes["hudi_options"] = wanted.hudi_options
    writers = tables.declared_writers(wanted.writers, Writers(), database, lake)
    if _without_times(writers) != _without_times(stored.writers):
        # A new declaration of the engines discards earlier detections, any other does not.
        declares_engines = writers.engines is not None and writers.engines != stored.writers.engines
        engines_at = database.clock() if declares_engines else stored.writers.engines_at
        changes["writers"] = replace(writers, engines_at=engines_at)
    readers = tables.declared_readers(wanted.readers)
    if readers != stored.readers:
        changes["readers"] = readers
    return changes


def _without_times(writers: Writers) -> Writers:
    return replace(writers, declared_at=None, engines_at=None)


def _are_same(sent: Mapping[str, str], stored: Mapping[str, str], database: Database) -> bool:
    if sent.keys() != stored.keys():
        return False
    new = table_secrets.without_masks(sent, stored)
    try:
        return table_secrets.opened(database.cipher, {key: stored[key] for key in new}) == new
    except SecretUnreadableError:
        # The stored secret cannot be read; storing what was sent makes it readable.
        return False
