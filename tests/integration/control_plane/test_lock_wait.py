"""Tests a table's own limit for lock waits, from the command line to the worker."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from service.model.errors import SettingsError
from service.runtime import settings
from tests.integration.control_plane.command_line import CommandLine, serving_command_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi.testclient import TestClient

OF_SERVICE = 77.0


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("lock_wait"), LOCK_WAIT_SECONDS=f"{OF_SERVICE:g}") as cli:
        yield cli


def test_the_limit_of_a_table_reaches_the_worker_and_wins_over_the_setting(cli: CommandLine) -> None:
    own, silent = cli.table("own", "--lock-wait-seconds", "2.5"), cli.table("silent")
    assert re.search(r"^lock wait +2\.5 s$", cli.run("tables", "show", "own").stdout, re.MULTILINE)
    assert re.search(r"^lock wait +the service's setting$", cli.run("tables", "show", "silent").stdout, re.MULTILINE)
    for table_id in (own, silent):
        cli.json("jobs", "run", "audit", table_id)
    with cli.worker() as worker:
        tables = [worker.must_lease().table for _ in range(2)]
    sent = {table.base_path: table.lock.wait_seconds for table in tables}
    assert sent == {f"{cli.folder}/own": 2.5, f"{cli.folder}/silent": OF_SERVICE}


def test_options_of_the_lock_leave_the_rest_of_the_file_as_it_is(cli: CommandLine) -> None:
    file = cli.folder / "lock.json"
    file.write_text(json.dumps({"lock": {"provider": "filesystem", "wait_seconds": 9}}))
    expire = "hoodie.write.lock.filesystem.expire"
    for name, options, lock in (
        ("of_file", (), {"options": {}, "wait_seconds": 9}),
        ("with_option", ("--lock-option", f"{expire}=60"), {"options": {expire: "60"}, "wait_seconds": 9}),
        ("longer", ("--lock-wait-seconds", "300"), {"options": {}, "wait_seconds": 300}),
    ):
        cli.table(name, "--file", str(file), *options)
        assert cli.json("tables", "show", name)["lock"] == {"provider": "filesystem", **lock}


def test_a_limit_out_of_bounds_is_refused_by_the_command(cli: CommandLine) -> None:
    for wrong in ("0", "0.5", "86401", "nan", "soon"):
        cli.refused("tables", "add", str(cli.folder / "x"), "--lock-wait-seconds", wrong, code=2)


@pytest.mark.parametrize("seconds", [0, 0.5, -1, 86_401, "soon", [9]])
def test_a_limit_out_of_bounds_is_refused_by_the_api(client: TestClient, table_id: str, seconds: Any) -> None:
    lock = {"provider": "filesystem", "wait_seconds": seconds}
    registered = client.post("/v1/tables", json={"base_path": "/lake/other", "lock": lock})
    changed = client.patch(f"/v1/tables/{table_id}", json={"lock": lock})
    for answer in (registered, changed):
        assert answer.status_code == 422, answer.text
        assert "lock.wait_seconds" in answer.text
    assert client.get(f"/v1/tables/{table_id}").json()["lock"]["wait_seconds"] is None


@pytest.mark.parametrize("seconds", ["0", "86401", "nan", "soon"])
def test_a_setting_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_LOCK_WAIT_SECONDS", seconds)
    with pytest.raises(SettingsError, match="LOCK_WAIT_SECONDS"):
        settings.load()
