"""The members of a table's profile that each poll renews."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from service.lake.index_profile import of_indexes
from service.lake.storage import Storage
from service.lake.table_config import TableConfig


def polled_profile(
    storage: Storage, config: TableConfig, pending_instants: int, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns members of a `TableProfile` as JSON. `known` is the profile before this poll."""
    members = {**config.profile(pending_instants), **of_indexes(storage, config, known)}
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(members))
    return found
