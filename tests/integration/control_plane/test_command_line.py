"""Tests each command of the command line with a real service that requires tokens: success, a refusal, and JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa

from service.access.token import Role
from service.db import schema
from service.db.engine import writing
from service.incidents import store as incident_store
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.model.clock import utc_now
from tests.integration.receiver import Receiver
from tests.integration.serving import eventually
from tests.support.guides import ROOT, is_program, shell_blocks
from tests.support.small_table import SmallTable, instant_at
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.control_plane.command_line import CommandLine
    from tests.integration.control_plane.protocol_worker import Worker

GUIDE = ROOT / ".docs" / "command-line.md"


@pytest.fixture(scope="module")
def table_id(cli: CommandLine) -> str:
    return str(cli.json("tables", "show", "orders")["id"])


def test_tables_below_a_folder_are_found_and_registered(cli: CommandLine) -> None:
    lake = cli.folder / "discovered"
    lake.mkdir()
    SmallTable(lake / "clicks").commit("20260101120000000", completed="20260101120001000")
    assert "can-be-registered" in cli.run("tables", "discover", str(lake)).stdout
    declared = ("--engine", "flink", "--hudi-version", "1.2.0", "--lock", "zookeeper", "--lock-wait-seconds", "9")
    found = cli.json("tables", "discover", str(lake), "--pattern", "cl*", "--register", *declared)
    assert [each["is_new"] for each in found["items"]] == [True]
    table = cli.json("tables", "show", "clicks")
    assert (table["writers"]["engines"], table["writers"]["hudi_version"]) == (["flink"], "1.2.0")
    assert (table["lock"]["provider"], table["lock"]["wait_seconds"]) == ("zookeeper", 9)
    SmallTable(lake / "old")
    (lake / "old" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=x\nhoodie.table.version=5\n")
    refused = cli.run("tables", "discover", str(lake), code=1).stdout
    assert "does not support this kind of Hudi table" in refused
    assert "allowed roots" in cli.refused("tables", "discover", "/etc", code=1)
    cli.run("tables", "remove", str(lake / "clicks"), "--yes")


def test_problems_are_listed_with_the_remedy(cli: CommandLine, table_id: str) -> None:
    incident = Incident(
        "inc_0", table_id, IncidentKind.STALE_WRITE, "20260101110000000", IncidentState.OPEN, utc_now(), details={}
    )
    with writing(cli.serving.engine) as connection:
        incident_store.add(connection, [incident])
    page = cli.json("problems", "--table", "orders", "--severity", "critical", code=1)
    assert [(each["kind"], each["table_id"]) for each in page["items"]] == [("incident-standing", table_id)]
    shown = cli.run("problems", code=1).stdout
    for part in ("critical", "remedy", "consequence"):
        assert part in shown
    [command] = re.findall(r"^command +(.*)$", shown, re.MULTILINE)
    assert command == f"groundskeeper jobs run repair {table_id} --param 'instants=[\"20260101110000000\"]'"
    job = cli.json(*shlex.split(command)[1:])
    assert (job["kind"], job["params"]["instants"]) == ("repair", ["20260101110000000"])
    cli.run("jobs", "cancel", job["id"])
    assert cli.json("problems", "--severity", "notice")["counts"]["critical"] == 0
    cli.run("incidents", "close", "inc_0", "--reason", "written again")
    assert cli.json("problems", "--table", table_id)["counts"]["critical"] == 0


def test_a_table_is_shown_by_id_name_and_path_as_the_api_shows_it(cli: CommandLine, table_id: str) -> None:
    # The first poll adds what it measures.
    assert eventually(lambda: cli.json("tables", "show", "orders")["clock"], 60)
    by_path = cli.json("tables", "show", f"{cli.folder}/orders/")
    assert by_path["id"] == table_id
    headers = {"Authorization": f"Bearer {cli.environment['GROUNDSKEEPER_TOKEN']}"}
    assert by_path == httpx.get(f"{cli.serving.url}/v1/tables/{table_id}", headers=headers).json()
    shown = cli.run("tables", "show", table_id).stdout
    assert "MERGE_ON_READ" in shown
    assert "spark" in shown
    assert cli.json("tables", "list")["items"] == [by_path]
    heading, row = cli.run("tables", "list").stdout.splitlines()
    assert heading.split() == ["ID", "NAME", "TYPE", "INDEX", "INCIDENTS", "OWNER", "TAGS", "PATH"]
    assert row.split() == [table_id, "orders", "MOR", "-", "none", str(cli.folder / "orders")]


def test_a_table_is_shown_with_the_clock_of_its_writers(cli: CommandLine) -> None:
    files = SmallTable(cli.folder / "zoned", utc=False)
    for minutes in (4, 2):
        begun = utc_now() - timedelta(minutes=minutes)
        ended, behind = begun + timedelta(minutes=1), timedelta(hours=8, seconds=30)
        instant = instant_at(begun - behind)
        files.begin(instant)
        for file in files.timeline.glob(f"{instant}.*"):
            os.utime(file, (begun.timestamp(), begun.timestamp()))
        files.commit(instant, completed=instant_at(ended - behind), modified=ended.timestamp())
    table_id = cli.json("tables", "add", str(files.base))["id"]
    assert eventually(lambda: cli.json("tables", "show", table_id)["clock"], 60)
    shown = cli.run("tables", "show", table_id).stdout
    assert re.search(r"^clock +8:00:30 behind UTC \(-30 s beside its zone\), by 2 commits$", shown, re.MULTILINE)
    cli.run("tables", "remove", table_id, "--yes")


def test_a_table_is_added_and_shown_with_its_warnings(cli: CommandLine) -> None:
    SmallTable(cli.folder / "bare")
    with (cli.folder / "bare" / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.populate.meta.fields=false\n")
    added = cli.run("tables", "add", str(cli.folder / "bare"), "--lock", "filesystem").stdout
    for shown in (added, cli.run("tables", "show", "bare").stdout):
        assert "no meta fields" in shown
    cli.run("tables", "remove", "bare", "--yes")


def test_the_options_of_a_writer_are_those_that_its_version_knows(cli: CommandLine, table_id: str) -> None:
    old, new = "hoodie.cleaner.policy.failed.writes=LAZY", "hoodie.clean.failed.writes.policy=LAZY"
    assert old in cli.run("tables", "writer-options", table_id, "--hudi-version", "0.15.0").stdout.splitlines()
    assert new in cli.run("tables", "writer-options", table_id).stdout.splitlines()
    assert f"SET {new};" in cli.run("tables", "writer-options", table_id, "--engine", "spark-sql").stdout.splitlines()


def test_the_options_of_a_writer_are_printed_in_the_requested_form(cli: CommandLine, table_id: str) -> None:
    def shown(engine: str, form: str) -> str:
        return cli.run("tables", "writer-options", table_id, "--engine", engine, "--format", form).stdout

    options = cli.json("tables", "writer-options", table_id)["options"]
    assert json.loads(shown("spark", "json")) == options
    lines = shown("spark", "properties").splitlines()
    assert lines[: len(options)] == [f"{name}={value}" for name, value in options.items()]
    assert lines[len(options) :] == ["spark.sql.filesourceTableRelationCacheSize=0"]
    assert all(line.startswith("SET ") for line in shown("spark-sql", "sql").splitlines())
    assert shown("spark-sql", "ddl").startswith("CREATE TABLE IF NOT EXISTS `orders` USING hudi LOCATION '/")
    assert shown("flink", "sql").startswith("WITH (\n  'connector' = 'hudi',\n")
    for engine, form in (("spark", "sql"), ("spark", "ddl")):
        refused = cli.refused("tables", "writer-options", table_id, "--engine", engine, "--format", form, code=2)
        assert "DataFrames take properties or json" in refused


def test_a_change_of_a_declaration_keeps_the_other_members(cli: CommandLine) -> None:
    table_id = cli.table("moved", "--lock", "zookeeper", "--lock-option", "hoodie.write.lock.zookeeper.lock_key=moved")

    def changed(*options: str) -> Any:
        return cli.json("tables", "set", "moved", *options)

    table = changed("--engine", "flink", "--hudi-version", "1.1.0", "--retry-conflicts")
    assert (table["id"], table["lock"]["provider"]) == (table_id, "zookeeper")
    assert (table["writers"]["engines"], table["writers"]["retry_conflicts"]) == (["flink"], True)
    writers = changed("--hudi-version", "1.2.0", "--query-pruning-off")["writers"]
    assert (writers["hudi_version"], writers["engines"]) == ("1.2.0", ["flink"])
    assert (writers["retry_conflicts"], writers["query_pruning_off"]) == (True, True)
    writers = changed("--kafka-connect-ended", "20260101120000000")["writers"]
    assert (writers["kafka_connect_ended"], writers["query_pruning_off"]) == ("20260101120000000", True)
    # The provider is the same, so the other options stay.
    url = "hoodie.write.lock.zookeeper.url"
    lock = changed("--lock-option", f"{url}=zk:2181", "--lock-wait-seconds", "30")["lock"]
    assert lock["options"] == {url: "zk:2181", "hoodie.write.lock.zookeeper.lock_key": "moved"}
    assert (lock["provider"], lock["wait_seconds"]) == ("zookeeper", 30)
    moved = cli.run("tables", "set", "moved", "--lock", "filesystem")
    assert f"Every writer must take this lock: groundskeeper tables writer-options {table_id}" in moved.stderr
    assert cli.json("tables", "show", "moved")["lock"]["options"] == {}
    assert changed("--name", "moved_again")["name"] == "moved_again"
    instants = ("--consumer", "copy=20260101120000000", "--consumer", "index=20260101130000000")
    cli.json("tables", "set", "moved_again", *instants)
    cli.json("tables", "set", "moved_again", "--remove-consumer", "index")
    headers = {"Authorization": f"Bearer {cli.environment['GROUNDSKEEPER_TOKEN']}"}
    consumers = httpx.get(f"{cli.serving.url}/v1/tables/{table_id}/consumers", headers=headers).json()["items"]
    assert [(each["name"], each["instant"]) for each in consumers] == [("copy", "20260101120000000")]
    assert "instant" in cli.refused("tables", "set", "moved_again", "--consumer", "copy=yesterday", code=1)
    assert "There is nothing to change" in cli.refused("tables", "set", "moved_again", code=2)
    assert "--hudi-version" in cli.refused("tables", "set", "moved_again", "--retry-conflicts", code=2)
    assert cli.json("tables", "set", "moved_again", "--buckets", "7", "--hash-field", "id")["index"] == {
        "type": "bucket",
        "num_buckets": 7,
        "hash_fields": ["id"],
    }
    cli.run("tables", "remove", "moved_again", "--yes")


def test_tables_that_cannot_be_registered_or_found_are_refused_with_the_reason(cli: CommandLine) -> None:
    again = cli.refused("tables", "add", str(cli.folder / "orders"), code=1)
    assert "already registered" in again
    assert again.count("\n") == 3  # title, detail, hint
    assert "not below any of the allowed roots" in cli.refused("tables", "add", "/elsewhere", code=1)
    assert "--hash-field" in cli.refused("tables", "add", "x", "--buckets", "4", code=2)
    assert "No table has the id" in cli.refused("tables", "show", "nothing", code=3)
    ended = cli.run("tables", "show", "tbl_nothing", "--json", code=3)
    assert json.loads(ended.stderr)["title"]


def test_a_table_is_removed_after_a_confirmation(cli: CommandLine) -> None:
    SmallTable(cli.folder / "passing").commit("20260101120000000", completed="20260101120001000")
    added = cli.json("tables", "add", str(cli.folder / "passing"), "--name", "in passing")
    assert added["name"] == "in passing"
    assert "--yes" in cli.refused("tables", "remove", "in passing", code=2)
    assert cli.json("tables", "remove", "in passing", "--yes")["id"] == added["id"]
    assert (cli.folder / "passing" / ".hoodie").is_dir()
    cli.refused("tables", "remove", added["id"], "--yes", code=3)


def test_a_lock_is_shown_and_broken_after_a_confirmation(cli: CommandLine) -> None:
    assert re.search(r"^lock +free$", cli.run("lock", "show", "orders").stdout, re.MULTILINE)
    assert "Nobody holds" in cli.refused("lock", "break", "orders", "--reason", "r", code=1)
    file = cli.folder / "orders" / ".hoodie" / "lock"
    file.touch()
    assert "no: The lock has not been held for long enough" in cli.run("lock", "show", "orders").stdout
    assert "GROUNDSKEEPER_LOCK_BREAK_SECONDS" in cli.refused("lock", "break", "orders", "--reason", "r", code=1)
    os.utime(file, (time.time() - 3 * 3600, time.time() - 3 * 3600))
    shown = cli.run("lock", "show", "orders")
    assert re.search(r"^held by +a writer that Hudi's lock file does not name$", shown.stdout, re.MULTILINE)
    assert "lock break tbl_" in shown.stderr
    assert cli.json("lock", "show", "orders")["is_breakable"] is True
    assert "--yes" in cli.run("lock", "break", "orders", "--reason", "r", code=2).stderr
    cli.run("lock", "break", "orders", "--yes", code=2)
    assert file.exists()
    ended = cli.run("lock", "break", "orders", "--reason", "its machine is gone", "--yes")
    assert ended.stdout == "Broke the lock of orders, held for 3 h by a writer that Hudi's lock file does not name.\n"
    assert not file.exists()
    cli.refused("lock", "show", "nothing", code=3)


def test_a_policy_is_changed_member_by_member(cli: CommandLine) -> None:
    assert cli.json("policy", "set", "orders", "compaction.commits=7", "cleaning.retain=9")["sources"][
        "compaction.commits"
    ] == ("table")
    changed = cli.json("policy", "set", "orders", "compaction.commits=8", "--unset", "cleaning.retain")
    assert changed["policy"]["compaction"]["commits"] == 8
    assert changed["sources"]["cleaning.retain"] == "default"
    assert cli.json("policy", "show", "orders") == changed
    assert "compaction.commits" in cli.run("policy", "show", "orders").stdout
    assert "is not known here" in cli.refused("policy", "set", "orders", "compaction.comits=8", code=1)
    assert "Nothing to set" in cli.refused("policy", "set", "orders", code=2)
    assert "is not set on this level" in cli.refused("policy", "set", "orders", "--unset", "windows", code=2)
    cli.run("policy", "set", "--pattern", "or*", "archival.commits=40", "precedence=2")
    kept = cli.json("policy", "set", "--pattern", "or*", "paused=true")
    assert (kept["settings"], kept["precedence"]) == ({"archival": {"commits": 40}, "paused": True}, 2)
    assert [each["pattern"] for each in cli.json("policy", "show")["items"]] == ["or*"]
    cli.refused("policy", "show", "--pattern", "nothing", code=3)
    # The pattern pauses the table, so only a value of the table itself can end the pause.
    assert cli.json("resume", "--table", "orders")["policy"]["paused"] is False


def test_automatic_jobs_are_paused_and_resumed(cli: CommandLine) -> None:
    assert cli.json("pause", "--reason", "moving")["reason"] == "moving"
    assert re.search(r"paused \d s ago by Ada \(\w+\): moving", cli.run("policy", "show").stdout)
    assert cli.run("resume").stdout == "Automatic jobs start again.\n"
    assert cli.run("resume").stdout == "Automatic jobs were not paused.\n"
    assert cli.json("resume") == {"paused": False, "since": None, "by": None, "reason": ""}
    assert cli.json("pause", "--table", "orders")["policy"]["paused"] is True
    assert cli.run("resume", "--table", "orders").stdout.startswith("Automatic jobs start again on orders")
    cli.refused("pause", "--table", "nothing", code=3)


def test_incidents_are_listed_with_their_remedy_and_closed(cli: CommandLine, table_id: str) -> None:
    incident = Incident(
        "inc_1", table_id, IncidentKind.STALE_WRITE, "20260101120000000", IncidentState.OPEN, utc_now(), details={}
    )
    with writing(cli.serving.engine) as connection:
        incident_store.add(connection, [incident])
    assert [each["id"] for each in cli.json("incidents", "list", "--state", "open")["items"]] == ["inc_1"]
    shown = cli.run("incidents", "list", "--table", "orders").stdout
    assert "20260101120000000" in shown
    assert "remedy" in shown
    assert cli.json("incidents", "close", "inc_1", "--reason", "written again")["because"].startswith("Ada")
    assert "closed" in cli.refused("incidents", "close", "inc_1", "--reason", "again", code=1)
    assert cli.json("incidents", "list", "--state", "open") == {"items": [], "next_cursor": None}


def test_a_webhook_is_added_and_its_deliveries_are_shown(cli: CommandLine) -> None:
    with Receiver() as receiver:
        created = cli.json("webhooks", "add", receiver.url, "--type", "job.*", "--table", "orders")
        assert created["secret"].startswith("whsec_")
        cli.json("jobs", "run", "diagnosis", "orders", "--dry-run")
        assert eventually(lambda: "delivered" in cli.run("webhooks", "deliveries", created["id"]).stdout, 60)
    assert cli.json("webhooks", "deliveries", created["id"], "--state", "dead")["items"] == []
    assert [each["id"] for each in cli.json("webhooks", "list")["items"]] == [created["id"]]
    assert created["secret"] not in cli.run("webhooks", "list").stdout
    assert cli.json("webhooks", "enable", created["id"])["enabled"] is True
    assert f"{created['id']} is enabled" in cli.run("webhooks", "enable", created["id"]).stdout
    since = ("--since", "2026-01-01T00:00:00Z")
    assert cli.json("webhooks", "replay", created["id"], *since, "--with-delivered")["replayed"] > 0
    assert cli.run("webhooks", "replay", created["id"], *since).stdout == "0 events will be sent.\n"
    assert "--since" in cli.run("webhooks", "replay", created["id"], code=2).stderr
    assert "matches no type of event" in cli.refused("webhooks", "add", receiver.url, "--type", "nothing.*", code=1)
    cli.run("webhooks", "remove", created["id"], "--yes")
    cli.refused("webhooks", "remove", created["id"], "--yes", code=3)


def test_workers_are_listed(cli: CommandLine, worker: Worker) -> None:
    worker.lease()
    assert [each["id"] for each in cli.json("workers")["items"]] == ["w1"]
    told = cli.run("workers").stdout
    assert "w1" in told
    assert "default: nothing queued" in told


def test_events_are_listed_by_type_and_table(cli: CommandLine, table_id: str) -> None:
    page = cli.json("events", "--type", "table.*", "--table", "orders")
    assert page["items"][0]["type"] == "table.registered"
    assert {each["subject"] for each in page["items"]} == {table_id}
    assert cli.json("events", "--after", str(page["next_after"]))["items"] == []
    first = cli.json("events", "--limit", "1")
    assert len(first["items"]) == 1
    assert first["next_after"] == int(first["items"][0]["sequence"])
    assert "table.registered  orders" in cli.run("events", "--type", "table.*").stdout
    cli.refused("events", "--table", "nothing", code=3)


def test_followed_events_go_on_after_an_outage_and_none_is_missed(cli: CommandLine) -> None:
    gate = TcpGate(httpx.URL(cli.serving.url).port or 0)
    start = cli.json("events", "--limit", "100000")["next_after"]
    with cli.started(
        "events",
        "--follow",
        "--json",
        "--after",
        str(start),
        "--type",
        "table.registered",
        "--url",
        f"http://127.0.0.1:{gate.port}",
    ) as following:
        assert following.stdout is not None
        seen = []
        for name in ("one", "two"):
            table = cli.folder / name
            SmallTable(table).commit("20260101120000000", completed="20260101120001000")
            with gate.shut() if name == "two" else nullcontext():
                cli.run("tables", "add", str(table))
            seen.append(json.loads(following.stdout.readline()))
            cli.run("tables", "remove", str(table), "--yes")
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 130
    gate.end()
    assert [each["data"]["table"]["name"] for each in seen] == ["one", "two"]


@pytest.mark.parametrize("no_color", ["", "1"])
def test_on_a_terminal_lines_fit_and_colours_obey_no_color(cli: CommandLine, no_color: str) -> None:
    shown = b""
    with cli.on_a_terminal("jobs", "list", NO_COLOR=no_color) as (process, terminal):
        with suppress(OSError):  # the end
            while piece := os.read(terminal, 65536):
                shown += piece
        assert process.wait(60) == 0
    text = shown.decode()
    assert ("\x1b[3" in text) == (not no_color)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


def test_the_commands_of_the_guide_work_one_after_the_other(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    SmallTable(cli.folder / "trips").commit("20260101120000000", completed="20260101120001000")
    monkeypatch.chdir(cli.folder)
    lines = "".join(block for block in shell_blocks(GUIDE) if not is_program(block)).splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("groundskeeper ")]
    assert len(commands) == len(lines) - 1 > 10  # except the line that sets the PATH
    shown = "".join(cli.run(*command).stdout for command in commands)
    assert "Registered trips" in shown
    assert re.search(r"compaction \(dry run\) +queued", shown)
    assert re.search(r"cleaning.retain +20 +pattern trips\*", shown)


def test_a_missing_or_invalid_token_is_reported(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{cli.environment['GROUNDSKEEPER_TOKEN']}\n")
    assert "orders" in cli.run("tables", "list", "--token-file", str(file), GROUNDSKEEPER_TOKEN=None).stdout
    assert "token" in cli.refused("tables", "list", code=4, GROUNDSKEEPER_TOKEN=None)
    assert "token" in cli.refused("tables", "list", code=4, GROUNDSKEEPER_TOKEN="gk_a_b")
    cli.refused("pause", code=4, GROUNDSKEEPER_TOKEN=cli.token("reads", Role.READER))
    cli.refused("tables", "list", "--token-file", str(tmp_path / "none"), code=2)


def test_an_unreachable_service_is_reported_as_such(cli: CommandLine) -> None:
    gate = TcpGate(1)
    gate.end()
    away = cli.refused("tables", "list", "--url", f"http://127.0.0.1:{gate.port}", code=5)
    assert "groundskeeper serve" in away
    with Receiver() as other:
        assert "not an answer of Groundskeeper" in cli.refused("workers", "--url", other.url, code=1)
    cli.refused("workers", "--url", "ftp://nowhere", code=2)


def test_the_doctor_names_what_is_missing_and_what_to_do(cli: CommandLine, tmp_path: Path) -> None:
    broken = {"GROUNDSKEEPER_ALLOWED_ROOTS": str(tmp_path / "nowhere"), "GROUNDSKEEPER_JARS": str(tmp_path)}
    ended = cli.run("doctor", "--json", code=1, **broken)
    found = json.loads(ended.stdout)
    checks = {check["name"]: check for check in found["checks"]}
    good = {name for name, check in checks.items() if check["state"] == "ok"}
    assert (found["ok"], good >= {"settings", "java", "service"}) == (False, True)
    assert (checks["storage"]["state"], checks["bundle"]["state"]) == ("failed", "failed")
    assert "GROUNDSKEEPER_ALLOWED_ROOTS" in checks["storage"]["hint"]
    assert "fetch_jars" in checks["bundle"]["hint"]
    misspelt = cli.run("doctor", code=1, GROUNDSKEEPER_PROT="1", GROUNDSKEEPER_URL="http://127.0.0.1:1").stdout
    assert re.search(
        r"failed +settings +GROUNDSKEEPER_PROT is no setting; the nearest one is GROUNDSKEEPER_PORT", misspelt
    )
    assert re.search(r"failed +service .*cannot be reached", misspelt)


def test_a_poll_of_a_table_that_was_never_read_shows_at_once_why(cli: CommandLine) -> None:
    table_id = cli.table("unread")
    assert eventually(lambda: "nothing new" in cli.run("tables", "poll", table_id).stdout, 60)
    (cli.folder / "unread").rename(cli.folder / "gone")
    with writing(cli.serving.engine) as connection:
        connection.execute(sa.delete(schema.snapshots).where(schema.snapshots.c.table_id == table_id))
    began = time.monotonic()
    assert "no poll has succeeded yet. 1 poll failed. " in cli.run("tables", "poll", table_id).stdout
    assert "no poll has succeeded yet. 2 polls failed. " in cli.run("tables", "poll", table_id).stdout
    assert time.monotonic() - began < 8
    cli.run("tables", "remove", table_id, "--yes")


def test_a_repaired_table_is_healthy_a_moment_after_a_requested_poll(cli: CommandLine) -> None:
    table_id = cli.table("mended")
    base, away = cli.folder / "mended", cli.folder / "away"
    headers = {"Authorization": f"Bearer {cli.token('looking', Role.READER)}"}

    def wait_for(kinds: list[str], seconds: float) -> None:
        def kinds_of_problems() -> list[str]:
            answer = httpx.get(f"{cli.serving.url}/v1/problems?table_id={table_id}", headers=headers)
            return [each["kind"] for each in answer.json()["items"]]

        assert eventually(lambda: kinds_of_problems() == kinds, seconds), kinds_of_problems()

    wait_for([], 60)
    base.rename(away)
    for _ in range(4):
        cli.run("tables", "poll", "mended")
        wait_for(["table-unreadable"], 60)
    away.rename(base)
    # A poll takes less than a second; the rest of the time is for a busy machine.
    assert "the poll found changes" in cli.run("tables", "poll", table_id).stdout
    wait_for([], 20)
    cli.run("tables", "remove", table_id, "--yes")
    cli.refused("tables", "poll", table_id, code=3)
