"""Alembic's entry: runs the migrations on the connection that `service.db.migrate` hands over."""

from __future__ import annotations

from alembic import context

from service.db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    # SQLite cannot alter a table in place; Alembic makes a new one and copies.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
