"""Lists tables with a query to a database, for example to the database in which a catalog stores its tables."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from service.registration.catalogs import errors
from service.registration.catalogs.catalog import Entry, Source

_CONNECT_SECONDS = 5
SECONDS = 30
"""The time that a PostgreSQL server may take for the query, or for a batch of its rows."""
# A server that has vanished is noticed after about half a minute instead of two hours.
_KEEP_ALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
_LOGIN = ("password authentication failed", "access denied for user", "no password supplied")
_AWAY = ("connection", "statement timeout", "unable to open database file", "could not translate host name")
_DENIED = ("permission denied", "command denied")


def entries(source: Source) -> Iterator[Entry]:
    """Yields a table for each row. The columns `name` (`database.table`) and `location` are required. A column `owner`
    has the owner; all other columns are parameters. Raises the errors of catalogs."""
    try:
        url = sa.make_url(source.address)
        is_postgres = url.get_backend_name() == "postgresql"
        timeout = {"connect_timeout": _CONNECT_SECONDS, **_KEEP_ALIVE} if is_postgres else {}
        engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=timeout, hide_parameters=True)
    except ImportError as error:
        raise errors.CatalogClientError(
            str(error), hint="Install the driver of the database on the service."
        ) from error
    except sa.exc.ArgumentError as error:
        raise errors.CatalogError("The address is not a URL of SQLAlchemy.") from error
    try:
        with engine.connect() as connection:
            if is_postgres:
                connection.execute(sa.text(f"SET LOCAL statement_timeout = '{SECONDS}s'"))
            found = connection.execute(sa.text(source.query or ""), execution_options={"stream_results": True})
            columns = {name.lower(): name for name in list(found.keys())}
            if missing := {"name", "location"} - columns.keys():
                raise errors.CatalogError(f"The query gives no column {' and no column '.join(sorted(missing))}.")
            for row in found.mappings():
                values = {key: str(row[name]) for key, name in columns.items() if row[name] is not None}
                name, location, owner = (values.pop(each, None) for each in ("name", "location", "owner"))
                yield Entry(name or "", location or "", owner, parameters=values)
    except sa.exc.DBAPIError as error:
        said = str(error.orig).strip()
        raise _kind_of(error, said.lower())(said[:600]) from error
    except sa.exc.SQLAlchemyError as error:
        raise errors.CatalogError(f"{type(error).__name__}: {error}"[:600]) from error
    finally:
        engine.dispose()


def _kind_of(error: sa.exc.DBAPIError, said: str) -> type[errors.CatalogError]:
    if any(each in said for each in _LOGIN):
        return errors.CatalogLoginError
    if any(each in said for each in _DENIED) or "InsufficientPrivilege" in type(error.orig).__name__:
        return errors.CatalogDeniedError
    is_away = error.connection_invalidated or any(each in said for each in _AWAY)
    return errors.CatalogUnavailableError if is_away else errors.CatalogError
