"""Advice about settings: /v1/advice, /v1/tables/{id}/advice"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from service.api.answers import ListOf, Shown
from service.api.dependencies import DatabaseDep
from service.api.entity_tags import set_tag
from service.api.requests import Request
from service.api.routes import Routes
from service.api.structs import made
from service.api.tables import TableId
from service.catalog import snapshot_store, table_store
from service.db.engine import reading
from service.policies import policy_registry
from service.scheduling import bucket_trends
from service.scheduling.bucket_growth import BucketGrowth
from service.simulation import advice_store, adviser, index_choice
from service.simulation.advice import Advice, AdviceState
from service.simulation.errors import AdviceOutdatedError
from service.simulation.index_choice import IndexChoice

router = Routes(prefix="/v1", tags=["policies"])

_NOT_YET = "it has not been computed yet"


class Answer(StrEnum):
    APPLIED = "applied"
    DISMISSED = "dismissed"


class AdviceIn(Request):
    state: Answer = Field(
        description="`applied` writes the setting to the table's own policy, `dismissed` hides the advice for 30 days",
        examples=["applied"],
    )


class AdviceOut(Shown, declared=Advice):
    table_id: str
    name: str = Field(description="Name of the table", examples=["orders"])

    @classmethod
    def named(cls, advice: Advice, name: str) -> AdviceOut:
        return made(cls, advice, name=name)


class GrowthOut(Shown, declared=BucketGrowth):
    """How the largest bucket of the table grows."""


class IndexChoiceOut(Shown, declared=IndexChoice):
    """Whether a bucket index would suit the table's writers."""


class TableAdviceOut(AdviceOut):
    buckets: GrowthOut | None = Field(description="Null without a bucket index, and while too little is known")
    index: IndexChoiceOut | None = Field(description="Null with a bucket index, and while too little is known")


@router.reader("GET /advice", "List the advice about tables")
def list_advice(
    database: DatabaseDep,
    state: Annotated[AdviceState, Query(description="Only advice in this state", examples=["open"])] = AdviceState.OPEN,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most items")] = 200,
) -> ListOf[AdviceOut]:
    """Advice is computed in the background, for each table once a day, from the commits of a week."""
    with reading(database.engine) as connection:
        found = advice_store.every(connection, [state], limit)
        names = table_store.names(connection, [each.table_id for each in found])
    return ListOf[AdviceOut].of(found, lambda each: AdviceOut.named(each, names[each.table_id]))


@router.reader("GET /tables/{table_id}/advice", "Show the advice about a table and its index, and how its buckets grow")
def get_advice(table_id: TableId, database: DatabaseDep, response: Response) -> TableAdviceOut:
    """The `ETag` identifies the table's own policy, to which the advice is applied."""
    now = database.clock()
    with reading(database.engine) as connection:
        table = table_store.get(connection, table_id)
        set_tag(response, connection, database.cipher, "table-policy", table_id)
        found = advice_store.find(connection, table_id) or Advice(table_id, now, AdviceState.NONE, _NOT_YET)
        stored = snapshot_store.find(connection, table_id)
        policy = policy_registry.effective_of(connection, table).policy
        growth = bucket_trends.growth(connection, stored.snapshot, policy, now) if stored else None
        index = index_choice.of_table(connection, table, stored.snapshot, now) if stored else None
    return made(TableAdviceOut, found, name=table.name, buckets=growth, index=index)


@router.operator("PUT /tables/{table_id}/advice", "Apply or dismiss the advice about a table", AdviceOutdatedError)
def put_advice(table_id: TableId, wanted: AdviceIn, database: DatabaseDep) -> AdviceOut:
    """The service takes applied advice back if its outcome within a week is worse than expected."""
    answer = adviser.apply if wanted.state is Answer.APPLIED else adviser.dismiss
    found = answer(database, table_id)
    with reading(database.engine) as connection:
        return AdviceOut.named(found, table_store.get(connection, table_id).name)
