"""Models of answers that are made from objects with attributes of the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel

from service.db.page import Page

_Model = TypeVar("_Model", bound=BaseModel)
_Item = TypeVar("_Item")
_Row = TypeVar("_Row")


def made(model: type[_Model], source: object, **members: Any) -> _Model:
    """Returns the model with the attributes of `source`; `members` take their place, or are not among them."""
    names = (name for name in model.model_fields if name not in members and hasattr(source, name))
    return model.model_validate({name: getattr(source, name) for name in names} | members, from_attributes=True)


class Shown(BaseModel):
    @classmethod
    def of(cls, source: object) -> Self:
        return cls.model_validate(source, from_attributes=True)


class ListOf(BaseModel, Generic[_Item]):
    """A list without pages. That of `JobOut` is called `JobList` in the document."""

    items: list[_Item]

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        return str(params[0].__name__).removesuffix("Out") + cls.__name__.removesuffix("Of")

    @classmethod
    def of(cls, rows: Iterable[_Row], show: Callable[[_Row], _Item]) -> Self:
        return cls(items=[show(row) for row in rows])


class PageOf(ListOf[_Item]):
    """One page of a list. That of `JobOut` is called `JobPage` in the document."""

    next_cursor: str | None

    @classmethod
    def of_page(cls, page: Page[_Row], show: Callable[[_Row], _Item]) -> Self:
        return cls(items=[show(row) for row in page.items], next_cursor=page.next_cursor)
