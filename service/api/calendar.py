"""The calendar of freezes and maintenance windows, which keep automatic jobs from starting: /v1/calendar"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Query
from pydantic import AwareDatetime, BaseModel, Field

from service.api.answers import Declared
from service.api.dependencies import DatabaseDep
from service.api.freezes import FreezeOut
from service.api.policy_models import WindowIn
from service.api.routes import Routes
from service.api.structs import made, struct_of
from service.db.engine import reading
from service.model.errors import ParamsInvalidError
from service.policies import calendar
from service.policies.calendar import FrozenTables, OpenWindows

router = Routes(prefix="/v1/calendar", tags=["policies"])

LONGEST = timedelta(days=35)
_MOST_NAMES = 20
_MOST_WINDOWS = 200


class SpanOut(BaseModel):
    starts_at: datetime = Field(description="Beginning of the span", examples=["2026-11-27T21:00:00Z"])
    ends_at: datetime = Field(description="End of the span", examples=["2026-11-28T03:30:00Z"])


class FreezeInCalendar(BaseModel):
    freeze: FreezeOut = Field(description="The freeze")
    tables: int = Field(description="Number of tables that match the freeze", examples=[12])
    table_names: list[str] = Field(
        description="Names of the first of these tables", examples=[["orders_eu", "orders_us"]]
    )

    @classmethod
    def of(cls, frozen: FrozenTables) -> FreezeInCalendar:
        names = list(frozen.names[:_MOST_NAMES])
        return struct_of(cls)(freeze=FreezeOut.of(frozen.freeze), tables=len(frozen.names), table_names=names)


class OpenWindowsOut(Declared, declared=OpenWindows):
    windows: list[WindowIn] = Field(description="The windows of the policy")
    tables: int = Field(description="Number of tables that have these windows", examples=[12])
    table_names: list[str] = Field(
        description="Names of the first of these tables", examples=[["orders_eu", "orders_us"]]
    )
    spans: list[SpanOut] = Field(description="Times in which at least one window is open, so that jobs may start")

    @classmethod
    def shown(cls, found: OpenWindows) -> OpenWindowsOut:
        return made(
            cls,
            found,
            windows=[each.to_json() for each in found.windows],
            tables=len(found.names),
            table_names=found.names[:_MOST_NAMES],
            spans=[SpanOut(starts_at=start, ends_at=end) for start, end in found.spans],
        )


class CalendarOut(BaseModel):
    freezes: list[FreezeInCalendar] = Field(
        description="Freezes. During a freeze, no automatic job starts on its tables"
    )
    windows: list[OpenWindowsOut] = Field(
        description="Windows: automatic jobs start only in these. Tables with the same windows share an entry; the "
        "windows of the most tables come first"
    )
    always: int = Field(description="Number of tables without windows", examples=[290])


Since = Annotated[AwareDatetime, Query(description="Begin of the period", examples=["2026-11-23T00:00:00Z"])]
Until = Annotated[
    AwareDatetime, Query(description="End of the period, at most 35 days later", examples=["2026-11-30T00:00:00Z"])
]


@router.reader("GET ", "Show freezes and maintenance windows of some days")
def get_calendar(database: DatabaseDep, *, since: Since, until: Until) -> CalendarOut:
    if not since < until <= since + LONGEST:
        raise ParamsInvalidError("until must be later than since, by at most 35 days.")
    with reading(database.engine) as connection:
        found = calendar.between(connection, since, until)
    return struct_of(CalendarOut)(
        freezes=[FreezeInCalendar.of(each) for each in found.freezes],
        windows=[OpenWindowsOut.shown(each) for each in found.windows[:_MOST_WINDOWS]],
        always=found.always,
    )
