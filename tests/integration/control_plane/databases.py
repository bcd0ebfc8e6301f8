"""For tests that start processes on a database of each kind: one kind is enough for a short run."""

import pytest

MOSTLY_ON_POSTGRESQL = pytest.mark.parametrize(
    "database", [pytest.param("sqlite", marks=pytest.mark.exhaustive), "postgresql"], indirect=True
)
