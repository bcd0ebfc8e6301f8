"""Query parameters that several lists share. Unknown parameters are refused, because a misspelt filter would otherwise
select everything."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, TypeVar, get_args, get_origin

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import StringConstraints

from jobs.contract import JobKind
from service.api.requests import GLOB, SOME_TEXT, Moment
from service.catalog.ownership import MOST_NAMED, OWNER, TAG, TableSelection
from service.db.page import PageRequest
from service.model.errors import ParamsInvalidError

_Choice = TypeVar("_Choice")
_REPEATED = "May be repeated. Default: any"

Since = Annotated[Moment | None, Query(description="Only items from this time on", examples=["2026-01-01T00:00:00Z"])]
Until = Annotated[Moment | None, Query(description="Before this time", examples=["2026-01-02T00:00:00Z"])]
OfTable = Annotated[
    str | None,
    Query(
        max_length=64,
        pattern=SOME_TEXT,
        description="Only items of the table with this id",
        examples=["tbl_0f3c2a9d5e7b1c44"],
    ),
]
AnyOf = Annotated[list[_Choice], Query(description=_REPEATED, max_length=50)]
# The number of stars is limited, because each star multiplies the steps of a comparison.
Glob = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=GLOB)]
OfKinds = Annotated[list[JobKind], Query(description=_REPEATED, max_length=50, examples=[["compaction", "cleaning"]])]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of items on a page")]
CursorText = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the previous page")]


# The dependencies are async, like those of `service.api.dependencies`. Otherwise each of them would need a thread of
# the pool.
async def _asked(
    *, since: Since = None, until: Until = None, limit: Limit = 100, cursor: CursorText = None
) -> PageRequest:
    return PageRequest(limit, cursor, since, until)


Asked = Annotated[PageRequest, Depends(_asked)]
"""The period and the page of a list."""
TOLERANT = {"x-ignores-unknown-parameters": True}
"""`openapi_extra` of an operation that other products call. Unknown parameters are ignored, because later versions of
these products may send them."""


async def _of_owners(
    *,
    owner: Annotated[
        list[Annotated[str, StringConstraints(pattern=OWNER)]],
        Query(
            max_length=MOST_NAMED,
            description="Only tables of this owner. May be repeated: any of these owners",
            examples=[["shop@example.com"]],
        ),
    ] = [],
    tag: Annotated[
        list[Annotated[str, StringConstraints(pattern=TAG)]],
        Query(
            max_length=MOST_NAMED,
            description="Only tables with this tag: `key`, or `key=value`. May be repeated: all of these tags",
            examples=[["team=shop"]],
        ),
    ] = [],
) -> TableSelection:
    return TableSelection(tuple(owner), tuple(tag))


OfOwners = Annotated[TableSelection, Depends(_of_owners)]
"""A filter by the owners and tags of tables."""

_MOST_SHOWN = 20
_LONGEST_SHOWN = 100


async def only_known(request: Request) -> None:
    """Checks the query parameters of every operation. Raises ParamsInvalidError for a parameter that the operation does
    not have, and for a parameter that takes one value but is given more than once. The member `known` of the problem
    lists the operation's parameters."""
    if not request.scope.get("query_string"):
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = _parameters(route.dependant)
    is_tolerant = bool(route.openapi_extra and TOLERANT.keys() <= route.openapi_extra.keys())
    given = Counter(name for name, _ in request.query_params.multi_items())
    found = []
    for name, times in given.items():
        if name not in known:
            if not is_tolerant:
                found.append({"field": name[:_LONGEST_SHOWN], "message": "is not known here"})
        elif times > 1 and not known[name]:
            found.append({"field": name, "message": f"has one value, and was given {times} times"})
    if not found:
        return
    found = found[:_MOST_SHOWN]
    names = ", ".join(sorted(known))
    about = f"The parameters of this call are: {names}." if known else "This call has no parameters."
    detail = "; ".join(f"{each['field']}: {each['message']}" for each in found)
    raise ParamsInvalidError(f"{detail}. {about}", extensions={"errors": found, "known": sorted(known)})


def _parameters(dependant: Dependant) -> dict[str, bool]:
    """Returns the names of the query parameters of a call and its dependencies, and which may be repeated."""
    found = {field.alias: _is_list(field.field_info.annotation) for field in dependant.query_params}
    for each in dependant.dependencies:
        found.update(_parameters(each))
    return found


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(get_origin(each) is list for each in get_args(annotation))
