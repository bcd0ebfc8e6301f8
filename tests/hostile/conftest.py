"""Provides the control plane's fixtures on SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.control_plane.conftest import (
    app_context,
    client,
    clock,
    examine,
    make_token,
    post,
    receiver,
    sqlite,
    table_id,
)

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["app_context", "client", "clock", "examine", "make_token", "post", "receiver", "sqlite", "table_id"]


@pytest.fixture
def engine(sqlite: sa.Engine) -> sa.Engine:
    return sqlite
