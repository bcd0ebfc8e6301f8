"""One running service for all acceptance tests. A test that kills the worker waits until the next one is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.daemon import Daemon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_POLLING = "86400"
SETTINGS = {
    "lease_seconds": "5",
    "recover_seconds": "0.5",
    "retry_first_seconds": "0.2",
    "slots": "3",
    "master": "local[2,4]",
}


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only root that the service may touch."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="package")
def daemon(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[Daemon]:
    by_policy = {"automatic": "true", "plan_seconds": "0.2", "poll_seconds": NO_POLLING}
    with Daemon(tmp_path_factory.mktemp("service"), allowed_roots=str(lake), **SETTINGS, **by_policy) as running:
        # No job starts without a call, except for tables whose policy has `paused` false.
        assert running.call("PUT", "/v1/policies/*", {"paused": True}).status_code == 201
        running.wait_for_worker()
        yield running
