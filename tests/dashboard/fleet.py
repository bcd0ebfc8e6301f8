"""A real service with small tables that can get problems."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx

from jobs.contract import BucketIndex
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.serving import Serving
from tests.support.small_table import SmallTable, instant_at

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import sqlalchemy as sa


class Fleet:
    """A real service that polls its tables every second, and by default starts nothing by itself."""

    def __init__(self, folder: Path, automatic: str = "false") -> None:
        self.folder = folder
        self.service = Serving(folder, AUTOMATIC=automatic, POLL_SECONDS="1", LEASE_SECONDS="900")
        self.api = httpx.Client(
            base_url=f"{self.service.url}/v1", headers={"Content-Type": "application/json"}, timeout=30
        )

    def close(self) -> None:
        self.api.close()
        self.service.__exit__()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.api.request(method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def table(self, name: str, *, buckets: int = 4, **more: Any) -> Table:
        return Table(self, name, buckets, SmallTable(self.folder / name, **more))

    def submit(self, table: Table, kind: str = "audit") -> str:
        return str(self.call("POST", f"/tables/{table.id}/jobs", {"kind": kind})["id"])

    def lease(self, worker: str, group: str) -> Any:
        asked = {"worker_id": worker, "worker": {"group": group}, "wait_seconds": 0}
        return self.call("POST", "/worker/leases", asked)["plan"]

    def age(self, rows: sa.Table, condition: sa.ColumnElement[bool], by: timedelta, *columns: str) -> None:
        """Moves the times of stored rows into the past, so that tests need not wait for hours."""
        with writing(self.service.engine) as connection:
            for row in connection.execute(rows.select().where(condition)).mappings().all():
                then = {name: row[name] - by for name in columns if row[name] is not None}
                connection.execute(rows.update().where(rows.c.id == row["id"]).values(then))


class Table:
    """A table whose instants are two seconds apart and began a day ago, unless a scene sets other times."""

    def __init__(self, fleet: Fleet, name: str, buckets: int, files: SmallTable) -> None:
        self.name, self.files, self.id, self._fleet = name, files, f"tbl_{name}", fleet
        self.at = utc_now() - timedelta(days=1)
        now = utc_now()
        index = BucketIndex(buckets, ("id",)) if buckets else None
        with writing(fleet.service.engine) as connection:
            table_store.register(connection, Registration(self.id, str(files.base), name, now, now, index=index))

    def instant(self) -> str:
        self.at += timedelta(seconds=2)
        return instant_at(self.at)

    def commit(self, files: Mapping[str, int] | None = None, *, instant: str | None = None, **more: Any) -> str:
        at = instant or self.instant()
        completed = instant_at(self.at + timedelta(seconds=1))
        self.files.commit(at, {"p": dict(files or {})}, completed=completed, modified=self.at.timestamp(), **more)
        return at

    def log_bytes(self) -> int | None:
        """Returns the bytes of logs of the last poll, None before the first one."""
        answer = self._fleet.api.get(f"/tables/{self.id}/snapshot")
        return int(answer.json()["total"]["log_bytes"]) if answer.status_code == 200 else None

    def policy(self, **wanted: Any) -> None:
        self._fleet.call("PUT", f"/tables/{self.id}/policy", wanted)
