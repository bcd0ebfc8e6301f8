"""Answers of operations: models, which are made from objects with attributes of the same names, and lists and pages of
models.

The thread that executes the operation also writes the answer as JSON. FastAPI would write it in the event loop instead,
while all other calls wait.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, get_type_hints

from fastapi import Response
from pydantic import BaseModel, TypeAdapter

from jobs.spec import Spec
from service.db.page import Page
from service.model import call_times
from service.model.calls import calls

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

_Model = TypeVar("_Model", bound=BaseModel)
_Item = TypeVar("_Item")
_Row = TypeVar("_Row")


def made(model: type[_Model], source: object, **members: Any) -> _Model:
    """Returns the model with the attributes of a dataclass or named tuple; `members` replace some of them, or add those
    that `source` lacks."""
    kind: Any = type(source)
    given = [(name, getattr(source, name)) for name in _shared(model, kind) if name not in members]
    return model.model_validate(dict(given) | members, from_attributes=True)


@cache
def _shared(model: type[BaseModel], source: type) -> Sequence[str]:
    """Returns the names of the model's members that a dataclass or named tuple has as fields or properties."""
    own = getattr(source, "__dataclass_fields__", ())
    return [name for name in model.model_fields if name in own or hasattr(source, name)]


class _OfDeclaration(ModelMetaclass):
    """Adds to a model the members of a record that are declared with a `Spec`."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], declared: type | None = None, **more: Any
    ) -> type:
        if declared is not None:
            hints = get_type_hints(declared, include_extras=True)
            told = {each: hint for each, hint in hints.items() if _has_text(hint)}
            namespace["__annotations__"] = told | namespace.get("__annotations__", {})
        return super().__new__(mcs, name, bases, namespace, **more)


def _has_text(hint: Any) -> bool:
    return any(isinstance(each, Spec) for each in getattr(hint, "__metadata__", ()))


class Declared(BaseModel, metaclass=_OfDeclaration):
    """A model that shows a record: `class JobOut(Declared, declared=Job)` adds only members that the record does not
    have."""


class Shown(Declared):
    @classmethod
    def of(cls, source: object) -> Self:
        return cls.model_validate(source, from_attributes=True)


class ListOf(BaseModel, Generic[_Item]):
    """A list without pages. `ListOf[JobOut]` is called `JobList` in the document."""

    items: list[_Item]

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        return str(params[0].__name__).removesuffix("Out") + cls.__name__.removesuffix("Of")

    @classmethod
    def of(cls, rows: Iterable[_Row], show: Callable[[_Row], _Item]) -> Self:
        return cls(items=[show(row) for row in rows])


class PageOf(ListOf[_Item]):
    """One page of a list. `PageOf[JobOut]` is called `JobPage` in the document."""

    next_cursor: str | None

    @classmethod
    def of_page(cls, page: Page[_Row], show: Callable[[_Row], _Item]) -> Self:
        return cls(items=[show(row) for row in page.items], next_cursor=page.next_cursor)


def written(operation: Callable[..., Any], *, status: int, model: Any = None) -> Callable[..., Any]:
    """Returns the operation so that it answers with JSON; status and headers that the operation sets are kept. `model`
    is the type of the answer, by default the declared return type. A coroutine function is returned unchanged."""
    if inspect.iscoroutinefunction(operation):
        return operation

    @cache
    def adapter() -> TypeAdapter[Any]:
        kind: Any = model or get_type_hints(operation, include_extras=True)["return"]
        return TypeAdapter(kind)

    @wraps(operation)
    def answer(**arguments: Any) -> Any:
        times = call_times.current.get()
        with calls.answering(), times.answering() if times else nullcontext():
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
