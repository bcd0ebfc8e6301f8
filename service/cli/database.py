"""Opens the database for commands that use it directly. Only some of them may create it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.model.errors import SettingsError

if TYPE_CHECKING:
    from sqlalchemy import Engine

Database = Annotated[str | None, typer.Option(help="SQLAlchemy URL. Default: sqlite:///groundskeeper.db")]


def opened(url: str | None, *, may_create: bool) -> Engine:
    """Opens the database of the URL, or else of the settings, and brings it to this version's schema.

    If `may_create` is False, raises SettingsError for a missing database, and for an SQLite file of another program.
    """
    # The import is made here, so that the commands without a database start at once.
    from service.db import migrate
    from service.db.engine import open_engine
    from service.runtime import settings

    engine = open_engine(settings.load(database=url).database)
    file = sqlite_file(engine)
    is_new = file is not None and not file.exists()
    if is_new and not may_create:
        raise SettingsError(
            f"There is no database {shown(engine)}.",
            hint="Set --database or GROUNDSKEEPER_DATABASE to the service's database, or start in `serve`'s folder.",
        )
    if not may_create and not migrate.is_ours(engine):
        raise SettingsError(
            f"The database {shown(engine)} was not made by Groundskeeper.",
            hint="Set --database or GROUNDSKEEPER_DATABASE to the service's database.",
        )
    migrate.upgrade(engine)
    typer.echo(f"{'New database' if is_new else 'Database'}: {shown(engine)}", err=True)
    return engine


def shown(engine: Engine) -> str:
    """Returns the URL without its password. The path of a file is absolute."""
    file = sqlite_file(engine)
    url = (
        engine.url.set(database=str(file)) if file and not str(engine.url.database).startswith("file:") else engine.url
    )
    return url.render_as_string(hide_password=True)


def sqlite_file(engine: Engine) -> Path | None:
    if engine.dialect.name != "sqlite":
        return None
    return Path(str(engine.url.database).removeprefix("file:").partition("?")[0]).absolute()
