"""Tests that the write-ahead log of SQLite is copied into the database in time."""

from pathlib import Path

import sqlalchemy as sa

from service.db import schema
from service.db.engine import checkpoint, open_engine, reading, writing


def test_the_log_is_copied_into_the_database_while_a_transaction_writes(tmp_path: Path) -> None:
    file = tmp_path / "gk.db"
    engine = open_engine(f"sqlite:///{file}")
    with writing(engine) as connection:
        schema.metadata.create_all(connection)
    before = file.stat().st_size
    with writing(engine) as connection:
        connection.execute(sa.text("CREATE TABLE other (id INTEGER)"))
        checkpoint(engine)
        assert file.stat().st_size > before
    with reading(engine) as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM other")).scalar_one() == 0
