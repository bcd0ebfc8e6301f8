"""Contexts of the API for tests."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from service.api.dependencies import AppContext
from service.events.database import Database
from service.observation.lake_access import LakeAccess

if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.lake.examination import Examination


def no_examination(*_args: object, **_more: object) -> Examination:
    raise AssertionError


def context_of(engine: sa.Engine, **others: Any) -> AppContext:
    """Returns a context with defaults except for `others` (see `changed`)."""
    return changed(AppContext(Database(engine), LakeAccess(no_examination)), **others)


def changed(context: AppContext, **others: Any) -> AppContext:
    """Returns the context with other values of members; each name belongs to the part with a member of this name."""
    for name, value in others.items():
        if name in {each.name for each in fields(context)}:
            context = replace(context, **{name: value})
            continue
        (part,) = (
            each.name
            for each in fields(context)
            if name in getattr(getattr(context, each.name), "__dataclass_fields__", ())
        )
        context = replace(context, **{part: replace(getattr(context, part), **{name: value})})
    return context
