"""Tests the store of sessions on both databases; `tests/hostile/test_sessions.py` tests the calls."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from service.access import session_store, token_store
from service.access.session import opened
from service.access.token import Role, issued
from service.db.engine import writing

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock


def test_a_token_has_a_number_of_sessions_and_ended_ones_are_deleted(engine: sa.Engine, clock: FakeClock) -> None:
    token = issued("t", Role.READER, clock())[1]
    made = []
    with writing(engine) as connection:
        token_store.add(connection, token)
        for _ in range(session_store.MOST_OF_TOKEN + 1):
            clock.advance(1)
            made.append(opened(token, clock(), timedelta(hours=1))[1])
            session_store.add(connection, made[-1])
        assert session_store.find(connection, made[0].id) is None
        assert session_store.find(connection, made[1].id) == made[1]
        assert session_store.prune(connection, made[2].expires_at, 9) == 2
        assert session_store.find(connection, made[3].id) == made[3]
