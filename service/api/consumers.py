"""Consumers of tables: /v1/tables/{id}/consumers"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Response
from pydantic import Field, StringConstraints
from sqlalchemy import Connection

from service.api.answers import Declared, ListOf
from service.api.dependencies import DatabaseDep
from service.api.entity_tags import set_tag
from service.api.requests import COMMIT_TIME, NAME, Request
from service.api.routes import Routes
from service.api.statuses import CREATED
from service.api.structs import made
from service.api.tables import TableId
from service.catalog import consumer_store, decision_times, table_store
from service.catalog.consumer import Consumer
from service.catalog.errors import ConsumerNotFoundError
from service.db.engine import reading, writing
from service.events.database import Database
from service.outcome import read_store
from service.outcome.reads import ReadSource
from service.policies.policy_registry import effective_of

router = Routes(prefix="/v1/tables/{table_id}/consumers", tags=["tables"])

Name = Annotated[str, Path(pattern=NAME, examples=["orders-to-warehouse"])]


class ConsumerIn(Request):
    instant: Annotated[str, StringConstraints(pattern=COMMIT_TIME)] = Field(
        description="The last commit that the consumer has seen: `requested_time` of GET /v1/commits",
        examples=["20260101120000000"],
    )


class ConsumerOut(Declared, declared=Consumer):
    """A consumer. Cleaning and archival keep the files that the consumer has yet to read, unless its last report is too
    old."""

    created_at: datetime
    expires_at: datetime = Field(
        description="Time after which no files are kept for the consumer, unless it reports earlier"
    )
    stale: bool = Field(description="Whether its last report is so old that no files are kept for it", examples=[False])

    @classmethod
    def of(cls, consumer: Consumer, hours: int, now: datetime) -> ConsumerOut:
        return made(cls, consumer, expires_at=consumer.expires_at(hours), stale=consumer.is_stale(hours, now))


@router.reader("GET ", "List the consumers of a table")
def list_consumers(table_id: TableId, database: DatabaseDep) -> ListOf[ConsumerOut]:
    with reading(database.engine) as connection:
        hours = _hours(connection, table_id)
        found = consumer_store.of_table(connection, table_id)
    return ListOf[ConsumerOut].of(found, lambda each: _shown(each, hours, database))


@router.reader("GET /{name}", "Show a consumer", ConsumerNotFoundError)
def get_consumer(table_id: TableId, name: Name, database: DatabaseDep, response: Response) -> ConsumerOut:
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "consumer", f"{table_id}/{name}")
        hours = _hours(connection, table_id)
        return _shown(consumer_store.get(connection, table_id, name), hours, database)


@router.operator(
    "PUT /{name}", "Report how far a consumer has come", also={CREATED: "The table had no consumer of this name before"}
)
def put_consumer(
    table_id: TableId, name: Name, wanted: ConsumerIn, database: DatabaseDep, response: Response
) -> ConsumerOut:
    """Registers the consumer, or renews it. An earlier instant does not bring back files that were already cleaned."""
    now = database.clock()
    with writing(database.engine) as connection:
        hours = _hours(connection, table_id)
        if consumer_store.put(connection, Consumer(table_id, name, wanted.instant, now, now)):
            response.status_code = CREATED
        found = consumer_store.get(connection, table_id, name)
        read_store.count(connection, {table_id: 1}, ReadSource.CONSUMERS, now)
    return _shown(found, hours, database)


@router.operator("DELETE /{name}", "Delete a consumer, so that no files are kept for it", ConsumerNotFoundError)
def delete_consumer(table_id: TableId, name: Name, database: DatabaseDep) -> None:
    with writing(database.engine) as connection:
        table_store.get(connection, table_id)
        consumer_store.delete(connection, table_id, name)
        decision_times.wake(connection, table_id, database.clock())


def _hours(connection: Connection, table_id: str) -> int:
    return effective_of(connection, table_store.get(connection, table_id)).policy.cleaning.consumer_hours


def _shown(consumer: Consumer, hours: int, database: Database) -> ConsumerOut:
    return ConsumerOut.of(consumer, hours, database.clock())
