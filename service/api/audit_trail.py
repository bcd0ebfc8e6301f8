"""Writes the audit trail: an entry for each call of the API that changes something, or is refused."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import Any

from fastapi.routing import APIRoute
from sqlalchemy import Connection
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from jobs.logs import request_id
from service.access import audit_store
from service.access.audit_entry import AuditEntry, shown
from service.access.refusals import Refusals, Repeats
from service.api import entity_tags
from service.api.audit_objects import object_of, read
from service.api.dependencies import Caller
from service.db import audit_record
from service.db.engine import writing
from service.events.database import Database
from service.model.errors import DatabaseDamagedError, DatabaseUnavailableError, GroundskeeperError

log = logging.getLogger(__name__)

_READING = {"detectTable", "evaluateTable"}
# Operations that create an object below the object that their path names, and do not change the named object.
_BELOW = {"submitJob"}
_OF_DATABASE = {DatabaseUnavailableError.type, DatabaseDamagedError.type}


class CallRecord:
    """The entry of one call. The first transaction that the call commits adds the entry
    (`service.db.audit_record.Recorder`). The entry has the object as it was at the beginning and the end of the
    transaction. At the commit the outcome of the call is not known, so the entry says that the call has succeeded."""

    def __init__(self, database: Database, route: APIRoute, scope: Scope, values: dict[str, Any]) -> None:
        self._database = database
        self._scope = scope
        self._route = route
        self._object = object_of(route.path, values)
        self._is_named = False
        self._before: tuple[str | None, Any] = (None, None)
        # The object before and after, if the call itself states them; they replace what is read from the database.
        self._stated: tuple[Any, Any] | None = None
        self._connection: Connection | None = None
        self._condition = entity_tags.condition_of(scope["method"], Headers(scope=scope))
        self.entry_id: int | None = None
        self.entity_tag: str | None = None
        self.presumed = int(route.status_code or 200)

    @property
    def operation(self) -> str:
        return str(self._route.operation_id)

    def begun(self, connection: Connection) -> None:
        if self.entry_id is not None:
            return
        self._connection = connection
        self._before = (None, None)
        if self._object is not None and not self._is_named and self.operation not in _BELOW:
            audit_store.lock(connection, *self._object)
            self._before = read(connection, self._database.cipher, *self._object)
            if self._object[0] in entity_tags.TAGGED:
                entity_tags.check(self._condition, self._before, creates=self._scope["method"] == "PUT")

    def about(self, kind: str, object_id: str) -> None:
        self._object, self._is_named, self._before = (kind, object_id), True, (None, None)

    def state_object(self, before: Any, after: Any) -> None:
        self._stated = (before, after)

    def sibling(self) -> CallRecord:
        return CallRecord(self._database, self._route, self._scope, {})

    def exists(self, kind: str, object_id: str) -> None:
        self._object = (kind, object_id)

    def ends(self, connection: Connection) -> None:
        if self._connection is not connection:
            if self.entry_id is not None and self._stated:
                audit_store.set_members(connection, self.entry_id, *map(shown, self._stated))
            return
        self._connection = None
        after = read(connection, self._database.cipher, *self._object) if self._object else (None, None)
        name, (before, now) = after[0] or self._before[0], self._stated or (self._before[1], after[1])
        self.entity_tag = self._tag(after[1]) if after != (None, None) and self._stated is None else None
        if before == now or (self.operation in _BELOW and not self._is_named):
            before = now = None
        entry = dataclasses.replace(self.entry(), object_name=name, before=shown(before), after=shown(now))
        self.entry_id = audit_store.add(connection, entry)

    def _tag(self, members: Any) -> str | None:
        """Returns the entity tag for an answer that shows the object."""
        is_shown = self._scope["method"] in ("PUT", "PATCH") or self._is_named
        return (
            entity_tags.tag_of(members) if self._object and self._object[0] in entity_tags.TAGGED and is_shown else None
        )

    def entry(self) -> AuditEntry:
        """Returns the entry without the members of the object."""
        caller: Caller | None = self._scope["state"].get("caller")
        token = caller.token if caller else None
        kind, object_id = self._object or (None, None)
        return AuditEntry(
            at=self._database.clock(),
            who=token.name if token else caller.name if caller else "nobody",
            token_id=token.id if token else None,
            role=caller.role.value if caller else None,
            address=self.address,
            method=self._scope["method"],
            route=self._route.path,
            operation=self.operation,
            object_type=kind,
            object_id=object_id,
            status=self.presumed,
            request_id=request_id(),
        )

    @property
    def address(self) -> str | None:
        return self._scope["client"][0] if self._scope.get("client") else None


class AuditTrail:
    """Decides which calls are recorded, and limits the entries of refused calls."""

    def __init__(self, database: Database, routes: Sequence[BaseRoute]) -> None:
        self._database = database
        self._routes = routes
        self._refusals = Refusals()

    def begin(self, scope: Scope) -> CallRecord | None:
        """Returns the record of a call; None for a call that only reads."""
        for each in self._routes:
            match, found = each.matches(scope)
            if match is Match.FULL:
                route = found["route"]
                if route.operation_id in _READING:
                    return None
                return CallRecord(self._database, route, scope, found.get("path_params", {}))
        return None

    def is_complete(self, record: CallRecord, status: int, problem: str | None) -> bool:
        """Returns whether the entry already has the outcome with which the call ended."""
        return problem in _OF_DATABASE or (record.entry_id is not None and status == record.presumed)

    def end(self, record: CallRecord, status: int, problem: str | None) -> None:
        """Writes the outcome of a call that has ended. An error is logged, so that the answer is still sent."""
        if self.is_complete(record, status, problem):
            return
        # The transaction below must not be recorded as a transaction of the call.
        try:
            with audit_record.kept_by(None):
                self._end(record, status, problem)
        except GroundskeeperError as error:
            log.warning("The audit trail lacks the outcome of %s: %s %s", record.operation, error.title, error.detail)

    def _end(self, record: CallRecord, status: int, problem: str | None) -> None:
        if record.entry_id is not None:
            with writing(self._database.engine) as connection:
                if audit_store.set_outcome(connection, record.entry_id, status, problem):
                    return
        entry = dataclasses.replace(record.entry(), status=status, problem=problem)
        if status < 400:
            with writing(self._database.engine) as connection:
                audit_store.add(connection, entry)
            return
        caller = entry.token_id or f"from {entry.address}"
        admitted = self._refusals.admit(caller, time.monotonic())
        if admitted is False:
            return
        with writing(self._database.engine) as connection:
            if isinstance(admitted, Repeats):
                audit_store.set_repeats(connection, admitted.entry_id, admitted.count)
            else:
                self._refusals.recorded(caller, audit_store.add(connection, entry))
