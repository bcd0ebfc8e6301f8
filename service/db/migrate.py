"""Migrates the database to the newest schema. Works from any directory: the migrations are a package of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import migrations
from service.db.engine import reading, writing

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# Any number that no other program uses on the same database.
_POSTGRESQL_LOCK = 7_202_611_001


def upgrade(engine: Engine, revision: str = "head") -> str:
    """Applies what is missing in one transaction, and returns the revision. Replicas may call this concurrently."""
    with writing(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_LOCK})
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        return _current(connection) or ""


def is_at_head(engine: Engine) -> bool:
    with reading(engine) as connection:
        return _current(connection) == ScriptDirectory.from_config(_config()).get_current_head()


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    folder = str(Path(migrations.__file__).parent)
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
