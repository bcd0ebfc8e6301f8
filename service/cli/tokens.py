"""`groundskeeper token`: creates, lists and revokes bearer tokens, directly in the database."""

from __future__ import annotations

import getpass
import os
import time
from datetime import timedelta
from typing import Annotated

import typer

from jobs.contract import DEFAULT_GROUP
from service.access.token import Role, Token, issued
from service.cli.database import Database, opened
from service.model.clock import utc_now

app = typer.Typer(help="Create, list and revoke bearer tokens.", no_args_is_help=True)


@app.command("create")
def create_token(
    *,
    role: Annotated[Role, typer.Option(help="Rights of the token")],
    name: Annotated[str, typer.Option(help="Name of the holder")] = "unnamed",
    group: Annotated[
        list[str] | None, typer.Option(help="Worker group that a worker may join; repeat it for several")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--tables",
            metavar="PATTERN",
            help="Tables for which the role holds (for others it is reader): orders_*, owner:shop or tag:team=shop;"
            " repeat it for several",
        ),
    ] = None,
    days: Annotated[
        float | None, typer.Option(min=0.001, max=36_500, help="Days until the token expires. Default: never")
    ] = None,
    database: Database = None,
) -> None:
    """Create a token and print it once. Once a token exists, every call needs one."""
    from service.access import token_changes
    from service.db.engine import writing

    groups = tuple(group or [DEFAULT_GROUP]) if role is Role.WORKER else None
    if group and groups is None:
        raise typer.BadParameter("only a token with the role worker has groups", param_hint="--group")
    if table and role not in (Role.OPERATOR, Role.ADMIN):
        raise typer.BadParameter("only the roles operator and admin can be limited to tables", param_hint="--tables")
    engine = opened(database, may_create=True)
    now = utc_now()
    expires_at = now + timedelta(days=days) if days is not None else None
    limits = {"groups": groups, "tables": tuple(table) if table else None}
    bearer, token = issued(name, role, now, expires_at=expires_at, **limits)
    with writing(engine) as connection:
        token_changes.create(connection, token, by=_user(), route="groundskeeper token create")
    _wait_for_services()
    typer.echo(str(bearer))
    typer.echo(f"Token {token.id} with role {role.value}. The token is not shown again.", err=True)


def _user() -> str:
    """Returns the user of the command line, for the audit trail."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # The user id may have no name, for example in a container.
        name = f"user {os.getuid()}"
    return f"{name} on the command line"


@app.command("list")
def list_tokens(database: Database = None) -> None:
    """List the tokens, without their secrets."""
    from service.access import token_store
    from service.db.engine import reading

    with reading(opened(database, may_create=False)) as connection:
        every = token_store.every(connection)
    for token in every:
        created, limits = f"{token.created_at:%Y-%m-%d %H:%M}", token.groups or token.tables
        only = f" ({', '.join(limits)})" if limits else ""
        typer.echo(f"{token.id}  {token.role.value:<8}  {created}  {_state(token)}  {token.name}{only}")
    if not every:
        typer.echo("No tokens exist.", err=True)


@app.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(help="Id from `token list`")], database: Database = None
) -> None:
    """Invalidate a token at once and permanently."""
    from service.access import token_changes
    from service.db.engine import writing

    with writing(opened(database, may_create=False)) as connection:
        token_changes.revoke(connection, token_id, utc_now(), by=_user(), route="groundskeeper token revoke")
    _wait_for_services()
    typer.echo(f"Token {token_id} is revoked.")


def _wait_for_services() -> None:
    """Waits until every service knows of a change, so that the change is in effect when the command ends."""
    from service.access.known_tokens import KEPT_SECONDS

    time.sleep(KEPT_SECONDS)


def _state(token: Token) -> str:
    if token.revoked_at:
        return f"revoked {token.revoked_at:%Y-%m-%d %H:%M}"
    if token.expires_at is None:
        return "valid"
    return f"{'valid until' if token.is_valid(utc_now()) else 'expired'} {token.expires_at:%Y-%m-%d %H:%M}"
