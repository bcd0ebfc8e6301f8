"""Answers of operations, which are written as JSON in the thread that works the call off.

FastAPI would pass what an operation returns to a third thread, which checks it, and then write it in the event loop,
while all other calls wait.
"""

from __future__ import annotations

import inspect
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, get_type_hints

from fastapi import Response
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable


def written(operation: Callable[..., Any], *, status: int, model: Any = None) -> Callable[..., Any]:
    """Returns the operation with its answer as JSON, and with the status and the headers that it has set itself.
    `model` is the type of the answer, by default that which the operation is declared to return. An operation that runs
    in the event loop stays as it is."""
    if inspect.iscoroutinefunction(operation):
        return operation

    @cache
    def adapter() -> TypeAdapter[Any]:
        kind: Any = model or get_type_hints(operation, include_extras=True)["return"]
        return TypeAdapter(kind)

    @wraps(operation)
    def answer(**arguments: Any) -> Any:
        found = operation(**arguments)
        if found is None or isinstance(found, Response):
            return found
        body = adapter().dump_json(found, by_alias=True)
        given = next((each for each in arguments.values() if isinstance(each, Response)), None)
        made = Response(body, (given and given.status_code) or status, media_type="application/json")
        if given is not None:
            made.headers.raw.extend(given.headers.raw)
        return made

    return answer
