"""Answers of operations: models, lists and pages. A model is made from an object that has attributes with the names of
its members.

The thread that executes the operation also writes the answer as JSON. FastAPI would write it in the event loop, where
all other calls would have to wait meanwhile.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, get_type_hints

from fastapi import Response
from pydantic import BaseModel

from jobs.spec import Spec
from service.api.structs import as_json, made, struct_of
from service.db.page import Page
from service.model import call_times
from service.model.calls import calls

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

_Item = TypeVar("_Item")
_Row = TypeVar("_Row")


class _OfDeclaration(ModelMetaclass):
    """Adds those members of a record to a model that are declared with a `Spec`."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], declared: type | None = None, **more: Any
    ) -> type:
        if declared is not None:
            hints = get_type_hints(declared, include_extras=True)
            described = {each: hint for each, hint in hints.items() if _has_text(hint)}
            namespace["__annotations__"] = described | namespace.get("__annotations__", {})
        return super().__new__(mcs, name, bases, namespace, **more)


def _has_text(hint: Any) -> bool:
    return any(isinstance(each, Spec) for each in getattr(hint, "__metadata__", ()))


class Declared(BaseModel, metaclass=_OfDeclaration):
    """A model that shows a record: `class JobOut(Declared, declared=Job)` adds only members that the record does not
    have."""


class Shown(Declared):
    @classmethod
    def of(cls, source: object) -> Self:
        return made(cls, source)


class ListOf(BaseModel, Generic[_Item]):
    """A list without pages. `ListOf[JobOut]` is called `JobList` in the document."""

    items: list[_Item]

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        return str(params[0].__name__).removesuffix("Out") + cls.__name__.removesuffix("Of")

    @classmethod
    def of(cls, rows: Iterable[_Row], show: Callable[[_Row], _Item]) -> Self:
        return struct_of(cls)(items=[show(row) for row in rows])


class PageOf(ListOf[_Item]):
    """One page of a list. `PageOf[JobOut]` is called `JobPage` in the document."""

    next_cursor: str | None

    @classmethod
    def of_page(cls, page: Page[_Row], show: Callable[[_Row], _Item]) -> Self:
        return struct_of(cls)(items=[show(row) for row in page.items], next_cursor=page.next_cursor)


def written(operation: Callable[..., Any], *, status: int) -> Callable[..., Any]:
    """Returns a function that calls the operation and answers with JSON. Status and headers that the operation sets are
    kept. If the operation is a coroutine function, the answer is written in the event loop."""

    def answer_with(found: Any, arguments: Mapping[str, Any]) -> Any:
        if found is None or isinstance(found, Response):
            return found
        given = next((each for each in arguments.values() if isinstance(each, Response)), None)
        whole = Response(as_json(found), (given and given.status_code) or status, media_type="application/json")
        if given is not None:
            whole.headers.raw.extend(given.headers.raw)
        return whole

    if inspect.iscoroutinefunction(operation):

        @wraps(operation)
        async def answer_later(**arguments: Any) -> Any:
            return answer_with(await operation(**arguments), arguments)

        return answer_later

    @wraps(operation)
    def answer(**arguments: Any) -> Any:
        times = call_times.current.get()
        with calls.answering(), times.answering() if times else nullcontext():
            return answer_with(operation(**arguments), arguments)

    return answer
