"""A machine is lost, and the service goes on elsewhere from its backup."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import httpx
from standardwebhooks import Webhook as Verifier

from jobs.contract import Outcome, Result
from service.access.token import Role
from service.db.engine import open_engine
from tests.integration.control_plane.command_line import CommandLine
from tests.integration.receiver import Receiver
from tests.integration.serving import Serving, eventually
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from pathlib import Path

JSON = {"Content-Type": "application/json"}
FAST = {"POLL_SECONDS": "1", "AUTOMATIC": "false", "LEASE_SECONDS": "2", "RECOVER_SECONDS": "0.2"}


class Client:
    """Calls a service as the holder of a token does."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=f"{url}/v1", headers={**JSON, "Authorization": f"Bearer {token}"}, timeout=30
        )

    def __call__(self, method: str, path: str, body: Any = None, status: int | None = None) -> Any:
        answer = self._http.request(method, path, json=body)
        assert answer.status_code == status if status else answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def lease(self, worker: str) -> Any:
        return (self("POST", "/worker/leases", {"worker_id": worker, "wait_seconds": 0}) or {}).get("plan")


def test_the_service_goes_on_where_its_backup_ends(tmp_path: Path) -> None:
    lake, here, there = (tmp_path / name for name in ("lake", "here", "there"))
    for folder in (lake, here, there):
        folder.mkdir()
    table = SmallTable(lake / "orders")
    table.commit("20260101120000000", completed="20260101120001000")
    with Receiver() as receiver:
        with Serving(here, ALLOWED_ROOTS=str(lake), **FAST) as serving:
            cli = CommandLine(serving, tmp_path)
            admin, of_worker = cli.environment["GROUNDSKEEPER_TOKEN"] or "", cli.token("w", Role.WORKER)
            old, worker = Client(cli.serving.url, admin), Client(cli.serving.url, of_worker)
            table_id = cli.json("tables", "add", str(table.base), "--tag", "team=shop")["id"]
            secret = old("POST", "/webhooks", {"url": receiver.url, "types": ["commit.*"]})["secret"]
            cli.run("policy", "set", "--pattern", "orders*", "compaction.commits=7")
            assert eventually(lambda: len(old("GET", f"/commits?table_id={table_id}")["items"]) == 1, 60)
            done, held = (
                old("POST", f"/tables/{table_id}/jobs", {"kind": kind})["id"] for kind in ("audit", "diagnosis")
            )
            assert worker.lease("w1")["job_id"] == done
            ended = {"attempt": 1, "result": Result(Outcome.SUCCEEDED).to_json()}
            worker("POST", f"/worker/leases/{done}/result", ended)
            assert worker.lease("w1")["job_id"] == held

            cli.environment["GROUNDSKEEPER_DATABASE"] = str(cli.serving.engine.url)
            cli.run("backup", str(tmp_path / "backup.tgz"))
            before = cli.run("export").stdout
            # The backup lacks these: a person's change, and a commit that was announced.
            cli.run("policy", "set", "--pattern", "lost*", "compaction.commits=7")
            cli.serving.kill()
        shutil.rmtree(here)
        known = set(receiver.ids)
        table.commit("20260101130000000", completed="20260101130001000")

        url = f"sqlite:///{there / 'groundskeeper.db'}"
        cli.run("restore", str(tmp_path / "backup.tgz"), "--database", url)
        with Serving(there, ALLOWED_ROOTS=str(lake), **FAST) as moved:
            new, worker = Client(moved.url, admin), Client(moved.url, of_worker)
            cli.environment["GROUNDSKEEPER_URL"] = moved.url
            assert cli.run("export").stdout == before
            states = [new("GET", f"/jobs/{job}")["state"] for job in (done, held)]
            assert states in (["succeeded", "leased"], ["succeeded", "queued"])
            # The worker of the lost machine may not go on; another one gets the job again.
            assert eventually(lambda: new("GET", f"/jobs/{held}")["state"] == "queued", 60)
            again: list[Any] = []
            assert eventually(lambda: bool(again.append(worker.lease("w2")) or again[-1]), 60)
            assert (again[-1]["job_id"], again[-1]["attempt"]) == (held, 2)
            stale = {"attempt": 1, "result": Result(Outcome.SUCCEEDED).to_json()}
            worker("POST", f"/worker/leases/{held}/result", stale, status=409)

            def announced() -> bool:
                found = [each for each in receiver.received if each.id not in known]
                return any(b"20260101130000000" in each.body for each in found)

            assert eventually(announced, 60), [each.body for each in receiver.received]
            for each in receiver.received:
                Verifier(secret).verify(each.body, each.headers)
            new("POST", f"/tables/{table_id}/poll")
        engine = open_engine(url)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        engine.dispose()
