"""A real service with one table for the tests of other tools, and a worker in the background."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx

from groundskeeper_client import Client, calls, models
from jobs.contract import LogLine, Outcome, Result, WorkOrder
from service.access import token_store
from service.access.token import Role, issued
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.serving import Serving, eventually
from tests.support.small_table import SmallTable, bucket_id
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COMPACTION = "20260101130000000"


class ToolService:
    """The table `orders` has a commit and the compaction `COMPACTION`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        orders = SmallTable(folder / "orders")
        orders.commit("20260101120000000", completed="20260101120001000")
        orders.commit(COMPACTION, action="commit", operation="COMPACT", completed="20260101130001000")
        self.serving = Serving(folder, AUTOMATIC="false", ALLOWED_ROOTS=str(folder), POLL_SECONDS="1")
        self.client = Client(self.serving.url, self.token(Role.ADMIN))
        self.table = self.client.send(calls.register_table(models.TableIn(base_path=str(folder / "orders"))))

    def token(self, role: Role) -> str:
        bearer, token = issued("Ada", role, utc_now(), groups=("default",) if role is Role.WORKER else None)
        with writing(self.serving.engine) as connection:
            token_store.add(connection, token)
        return str(bearer)

    def commit(self) -> str:
        """Adds a writer's commit of the current time, and returns its instant."""
        instant = f"{utc_now():%Y%m%d%H%M%S}000"
        name = f"{bucket_id(0)}_0-1-0_{instant}.parquet"
        SmallTable.standing(self._folder / "orders").commit(instant, {"": {name: 100}}, completed=instant)
        return instant

    def close(self) -> None:
        self.client.close()
        self.serving.__exit__()


class Work:
    """A worker that sends `log` and ends each job with the value of `result`; for None the job runs until it is
    cancelled."""

    def __init__(self, service: ToolService) -> None:
        self.orders: list[WorkOrder] = []
        self.log: tuple[LogLine, ...] = ()
        self.result: Callable[[WorkOrder], Result | None] = lambda _order: Result(Outcome.SUCCEEDED)
        self._end = threading.Event()
        headers = {"Authorization": f"Bearer {service.token(Role.WORKER)}"}
        self._http = httpx.Client(base_url=service.serving.url, headers=headers)
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        worker = Worker(self._http)  # type: ignore[arg-type]  # it calls `post` only
        while not self._end.wait(0.1):
            order = worker.lease()
            if order is None:
                continue
            self.orders.append(order)
            worker.beat(order)
            result = self.result(order)
            while result is None:
                if self._end.wait(0.1):
                    return
                if worker.beat(order) == "cancel":
                    result = Result(Outcome.CANCELLED)
            worker.log(order, *self.log)
            worker.report(order, result)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._http.close()


@contextmanager
def an_outage_after_a_submission(service: ToolService, work: Work) -> Iterator[str]:
    """Yields an address of the service that loses the answer to the next submission, and is then shut for longer than
    a client repeats its calls. The job ends after the outage."""
    gate = TcpGate(httpx.URL(service.serving.url).port or 0)
    gate.lose_answer(b"POST /v1/tables/")
    known, is_over = _jobs(service), threading.Event()

    def answer(_order: WorkOrder) -> Result:
        assert is_over.wait(120)
        return Result(Outcome.SUCCEEDED)

    def break_off() -> None:
        if eventually(lambda: _jobs(service) > known, 200):
            with gate.shut():
                time.sleep(9)
        time.sleep(3)
        is_over.set()

    work.result = answer
    breaking = threading.Thread(target=break_off)
    breaking.start()
    yield f"http://127.0.0.1:{gate.port}"
    breaking.join()
    gate.end()


def _jobs(service: ToolService) -> set[str]:
    return {job.id for job in service.client.items(calls.list_jobs())}
