"""Migrates the database to the newest schema. Works from any directory: the migrations are a package of their own."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

import migrations
from service.db.engine import reading, writing
from service.model.errors import SettingsError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

# Any number that no other program uses on the same database.
_POSTGRESQL_LOCK = 7_202_611_001


def upgrade(engine: Engine, revision: str = "head") -> str:
    """Applies what is missing in one transaction, and returns the revision. Replicas may call this concurrently.

    Raises SettingsError if a newer version has migrated the database, and DatabaseUnavailableError.
    """
    with writing(engine) as connection, _without_limits(connection):
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_LOCK})
        config = _config()
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, revision)
        except CommandError as error:  # Alembic does not know the revision that it found
            shown = engine.url.render_as_string(hide_password=True)
            raise SettingsError(
                f"The database {shown} was made by a newer version of Groundskeeper.",
                hint="Run that version, or choose another database with GROUNDSKEEPER_DATABASE.",
            ) from error
        # A database that cannot be written to should not be noticed later.
        rewrite(connection)
        return _current(connection) or ""


def is_at_head(engine: Engine) -> bool:
    with reading(engine) as connection:
        return _current(connection) == _head()


def rewrite(connection: Connection) -> None:
    """Writes the revision as it is, so that committing shows whether the database can be written to."""
    version = sa.table("alembic_version", sa.column("version_num"))
    connection.execute(version.update().values(version_num=version.c.version_num))


def _without_limits(connection: Connection) -> AbstractContextManager[None]:
    if connection.dialect.name != "postgresql":
        return nullcontext()
    # Its driver is an extra.
    from service.db.postgresql import without_limits

    return without_limits(connection)


@cache
def _head() -> str | None:
    return ScriptDirectory.from_config(_config()).get_current_head()


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    folder = str(Path(migrations.__file__).parent)
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
