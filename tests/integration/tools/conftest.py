"""A service whose jobs a test ends as it likes, for the tools that submit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.tools.tool_service import ToolService, Work

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolService]:
    service = ToolService(tmp_path_factory.mktemp("service"))
    yield service
    service.close()


@pytest.fixture
def work(service: ToolService) -> Iterator[Work]:
    work = Work(service)
    yield work
    work.close()
