"""Migrates the database to the newest schema. The migrations are a package, so this works from any directory."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

import migrations
from service.db import schema
from service.db.engine import reading, writing
from service.db.upsert import upsert
from service.model.errors import SettingsError

log = logging.getLogger(__name__)

_r = schema.schema_revisions
# The key of the advisory lock may be any number that no other program uses in the same database.
_POSTGRESQL_LOCK = 7_202_611_001


def upgrade(engine: Engine, revision: str = "head") -> str:
    """Applies the missing revisions in one transaction, and returns the newest one. Replicas may call this
    concurrently. A newer schema that works with this version stays as it is. Raises SettingsError for a newer schema
    that does not work with this version, and DatabaseUnavailableError."""
    with writing(engine) as connection, _without_limits(connection):
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_LOCK})
        found = _current(connection)
        if found is None or found in _known():
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            _declare(connection)
        elif _is_declared(connection, found):
            log.info("A newer version has migrated the database, to revision %s, which works with this one", found)
        else:
            shown = engine.url.render_as_string(hide_password=True)
            raise SettingsError(
                f"The database {shown} was made by a newer version of Groundskeeper.",
                hint="Run that version, or choose another database with GROUNDSKEEPER_DATABASE.",
            )
        # A read-only database refuses this write. So the service fails when it starts, and not at a later call.
        rewrite(connection)
        return _current(connection) or ""


def is_usable(engine: Engine) -> bool:
    """Returns whether the database has the schema of this version, or a newer one that works with it."""
    with reading(engine) as connection:
        found = _current(connection)
        if found is None or found in _known():
            return found == _head()
        return _is_declared(connection, found)


def is_ours(engine: Engine) -> bool:
    """Returns whether any version of Groundskeeper has migrated the database."""
    with reading(engine) as connection:
        return _current(connection) is not None


def is_newer(engine: Engine) -> bool:
    """Returns whether a newer version has migrated the database."""
    with reading(engine) as connection:
        found = _current(connection)
        return found is not None and found not in _known()


def rewrite(connection: Connection) -> None:
    """Writes the unchanged revision, so that the commit shows whether the database can be written to."""
    version = sa.table("alembic_version", sa.column("version_num"))
    connection.execute(version.update().values(version_num=version.c.version_num))


def _declare(connection: Connection) -> None:
    """Records what the current revision declares about earlier versions. These versions do not have its migration, so
    they read the declaration from the database."""
    current = _current(connection)
    works_with = _works_with().get(current or "")
    if works_with is not None:
        upsert(connection, _r, {"revision": current}, {"works_with": works_with})


def _is_declared(connection: Connection, newer: str) -> bool:
    """Returns whether the unknown revision `newer` has declared that it works with a revision that is known here."""
    if not sa.inspect(connection).has_table(_r.name):
        return False
    declared = connection.execute(sa.select(_r.c.works_with).where(_r.c.revision == newer)).scalar()
    return declared in _known()


def _without_limits(connection: Connection) -> AbstractContextManager[None]:
    if connection.dialect.name != "postgresql":
        return nullcontext()
    # The driver of PostgreSQL is an optional dependency.
    from service.db.postgresql import without_limits

    return without_limits(connection)


@cache
def _works_with() -> Mapping[str, str | None]:
    """Returns the declarations of all revisions. Revisions before 0010 have none."""
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return {each.revision: getattr(each.module, "works_with", None) for each in scripts}


def _known() -> Collection[str]:
    return _works_with().keys()


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
