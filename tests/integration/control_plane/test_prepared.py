"""Statements that come again are executed without SQLAlchemy (`service.db.prepared`), with the same results."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, StatementError

from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import prepared, schema
from service.db.engine import reading, writing
from service.db.upsert import upsert
from service.model.errors import DatabaseUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_t, _p = schema.tables, schema.policies
AT = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
OF_NAME = sa.select(_t.c.id, _t.c.created_at, _t.c.tags, _t.c.owner).where(_t.c.name == sa.bindparam("of_name"))


@pytest.fixture(autouse=True)
def _a_table(engine: sa.Engine) -> None:
    table = Registration("tbl_1", "/lake/orders", "orders", AT, AT).evolve(tags={"team": "shop"})
    with writing(engine) as connection:
        table_store.register(connection, table)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that SQLAlchemy did not execute."""
    found: list[str] = []
    executed = prepared._Prepared.executed

    def note(self: Any, *given: Any) -> Any:
        found.append(self._text)
        return executed(self, *given)

    monkeypatch.setattr(prepared._Prepared, "executed", note)
    return found


def test_rows_are_the_same_at_each_execution(engine: sa.Engine, executed: list[str]) -> None:
    for number in range(3):
        with reading(engine) as connection:
            row = connection.execute(OF_NAME, {"of_name": "orders"}).one()
            assert (row.id, row.created_at, row.tags, row.owner) == ("tbl_1", AT, {"team": "shop"}, None)
            assert dict(row._mapping) == {"id": "tbl_1", "created_at": AT, "tags": {"team": "shop"}, "owner": None}
            assert connection.execute(OF_NAME, {"of_name": "orders"}).scalars().all() == ["tbl_1"]
            assert connection.execute(OF_NAME, {"of_name": "none"}).one_or_none() is None
        assert len(executed) == 3 * number + 2


def test_statements_of_one_form_keep_their_own_values(engine: sa.Engine, executed: list[str]) -> None:
    queries = [sa.select(_t.c.id).where(_t.c.name == name, _t.c.created_at == AT) for name in ("orders", "none")]
    for _ in range(3):
        with reading(engine) as connection:
            assert [connection.execute(each).scalar() for each in queries] == ["tbl_1", None]
    assert len(executed) == 4


def test_writes_are_counted_and_have_the_columns_that_are_given(engine: sa.Engine, executed: list[str]) -> None:
    change = _t.update().where(_t.c.id == sa.bindparam("of_table"))
    for number in range(3):
        with writing(engine) as connection:
            assert connection.execute(change, {"of_table": "tbl_1", "owner": f"ada {number}"}).rowcount == 1
            assert connection.execute(change, {"of_table": "tbl_1", "tags": {"n": number}}).rowcount == 1
            assert connection.execute(change, {"of_table": "tbl_2", "owner": "eve"}).rowcount == 0
            times = {"created_at": AT, "updated_at": AT}
            upsert(connection, _p, {"pattern": "*"}, {"precedence": number, "settings": {"n": number}}, only_new=times)
            rows = [{"pattern": name, "precedence": 1, "settings": {}, **times} for name in "ab"]
            connection.execute(_p.delete().where(_p.c.pattern != "*"))
            connection.execute(INSERT, rows)
        with reading(engine) as connection:
            found = connection.execute(OF_NAME, {"of_name": "orders"}).one()
            patterns = connection.execute(PATTERNS).all()
        assert (found.owner, found.tags) == (f"ada {number}", {"n": number})
        assert patterns == [("*", number, {"n": number}), ("a", 1, {}), ("b", 1, {})]
    assert len(executed) == 2 + 2 * 7


INSERT = _p.insert()
PATTERNS = sa.select(_p.c.pattern, _p.c.precedence, _p.c.settings).order_by(_p.c.pattern)


def test_errors_are_the_same_at_each_execution(engine: sa.Engine) -> None:
    row = {"pattern": "*", "precedence": 0, "settings": {}, "created_at": AT, "updated_at": AT}
    for number in range(3):
        if number == 0:
            with writing(engine) as connection:
                connection.execute(INSERT, row)
        with pytest.raises(IntegrityError), writing(engine) as connection:
            connection.execute(INSERT, row)
        with pytest.raises(StatementError), writing(engine) as connection:
            connection.execute(INSERT, {**row, "created_at": "now"})
    with reading(engine) as connection:
        assert len(connection.execute(PATTERNS).all()) == 1


def test_a_lost_connection_is_a_database_that_is_not_available(engine: sa.Engine) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("There is no connection to lose.")
    query = sa.select(sa.func.pg_terminate_backend(sa.bindparam("pid", type_=sa.Integer)))

    def lose() -> None:
        with reading(engine) as connection:
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            connection.execute(query, {"pid": pid})

    for _ in range(3):
        with pytest.raises(DatabaseUnavailableError):
            lose()
    with reading(engine) as connection:
        assert connection.execute(OF_NAME, {"of_name": "orders"}).one().id == "tbl_1"


def test_listeners_hear_of_each_execution(engine: sa.Engine, executed: list[str]) -> None:
    heard: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *given: heard.append(given[2]))
    for _ in range(3):
        with reading(engine) as connection:
            connection.execute(OF_NAME, {"of_name": "orders"}).one()
    assert (len(heard), executed) == (3, [])
