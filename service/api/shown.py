"""Models of answers that are made from objects with attributes of the same names."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from pydantic import BaseModel

_Model = TypeVar("_Model", bound=BaseModel)


def made(model: type[_Model], source: object, **members: Any) -> _Model:
    """Returns the model with the attributes of `source`; `members` take their place, or are not among them."""
    names = (name for name in model.model_fields if name not in members and hasattr(source, name))
    return model.model_validate({name: getattr(source, name) for name in names} | members, from_attributes=True)


class Shown(BaseModel):
    @classmethod
    def of(cls, source: object) -> Self:
        return cls.model_validate(source, from_attributes=True)
