"""Hudi's instants as moments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.lake.table_config import TableConfig

_SECONDS = len("yyyyMMddHHmmss")


def moment(time: str, config: TableConfig) -> datetime | None:
    """`yyyyMMddHHmmss` with or without milliseconds; None for what is no date, as `HoodieTimeline.INIT_INSTANT_TS`.

    A table whose timeline is not in UTC (`hoodie.table.timeline.timezone`) is in the zone of its writers. Which one
    that is no table says; every Hudi client takes its own for it, and so do we.
    """
    try:
        seconds = datetime.strptime(time[:_SECONDS], "%Y%m%d%H%M%S")  # noqa: DTZ007 - the zone comes below
        at = seconds.replace(microsecond=int(time[_SECONDS : _SECONDS + 3] or 0) * 1000)
        if config.properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC":
            return at.replace(tzinfo=UTC)
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
