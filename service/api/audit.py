"""The audit trail: /v1/audit"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field, StringConstraints

from service.access import audit_store
from service.access.audit_entry import AuditEntry, Outcome
from service.access.token import Role
from service.api.answers import PageOf, Shown
from service.api.dependencies import DatabaseDep
from service.api.query_parameters import Asked
from service.api.requests import SOME_TEXT
from service.api.routes import Routes
from service.db.engine import reading

router = Routes(prefix="/v1", tags=["audit"])

Text = Annotated[str | None, Query(max_length=1024, pattern=SOME_TEXT)]
Texts = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=SOME_TEXT)]], Query(max_length=50)
]


class AuditEntryOut(Shown, declared=AuditEntry):
    """A call that changed something, or that was refused."""

    role: Role | None = Field(description="Role of the token; null without one", examples=["admin"])
    before: dict[str, Any] | None = Field(
        description="The object before the call, with masks for secrets; null if it did not exist",
        examples=[{"name": "trips"}],
    )
    after: dict[str, Any] | None = Field(
        description="The object after the call; `before` and `after` are null if it did not change",
        examples=[{"name": "orders"}],
    )
    outcome: Outcome = Field(description="`refused`: status 400 to 499; `failed`: 500 and above", examples=["done"])


class AuditPage(PageOf[AuditEntryOut]): ...


@router.admin("GET /audit", "List who changed what, newest first")
def list_audit_entries(
    database: DatabaseDep,
    *,
    who: Text = None,
    token_id: Text = None,
    operation: Texts = [],
    object_type: Texts = [],
    object_id: Text = None,
    outcome: Annotated[list[Outcome], Query(max_length=10)] = [],
    asked: Asked,
) -> AuditPage:
    """Lists an entry for every call that changed something or was refused, except the frequent calls of workers and
    writers. Creating or revoking a token on the command line adds an entry too. An entry is written in the same
    transaction as the change."""
    with reading(database.engine) as connection:
        page = audit_store.page(
            connection,
            asked,
            outcomes=outcome,
            who=_given(who),
            token_id=_given(token_id),
            operation=operation,
            object_type=object_type,
            object_id=_given(object_id),
        )
    return AuditPage.of_page(page, AuditEntryOut.of)


def _given(value: str | None) -> list[str]:
    return [] if value is None else [value]
