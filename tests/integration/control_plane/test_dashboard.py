"""Tests the dashboard: the files that the service serves at /, and their display in a browser."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from jobs.contract import BucketIndex, JobKind, Outcome, Problem, Result
from service.access.token import Role
from service.api.dashboard import FOLDER, scripts
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.model.clock import utc_now
from service.policies import store
from service.policies.policy import TableLevel
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict
from tests.dashboard.conftest import browser, faults, faults_of, new_page, page
from tests.integration.control_plane.databases import open_sqlite
from tests.integration.serving import Serving
from tests.support.forked_service import ended
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fastapi.testclient import TestClient
    from playwright.sync_api import Page

    from tests.support.browser import Faults

__all__ = ["browser", "faults", "faults_of", "new_page", "page"]

FILES = sorted(path.name for path in FOLDER.iterdir())
SCRIPTS = scripts(FOLDER)
_MODULE = re.compile(r'^(?:import|export)\b[^"]*from "([^"]+)";$', re.MULTILINE)
_IMPORTED = re.compile(r'import\("\./([^"]+)"\)|from "\./([^"]+)"')
_REFERENCE = re.compile(r'(?:src|href)="([^"#]+)"')
# The URL is only the name of a vocabulary, which no browser requests.
_NAMESPACE = "http://www.w3.org/2000/svg"


def test_the_page_needs_no_token_and_loads_nothing_from_elsewhere(
    client: TestClient, make_token: Callable[[Role], dict[str, str]]
) -> None:
    make_token(Role.ADMIN)
    assert client.get("/v1/tables").status_code == 401
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-cache"
    assert client.head("/").status_code == 200


def test_the_page_asks_for_its_first_data_itself_and_runs_no_other_script(client: TestClient) -> None:
    answer = client.get("/")
    [script] = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    assert script == (FOLDER / "preload.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("accepted", "is_packed"), [("gzip, br", True), ("br", False), ("gzip;q=0", False), ("", False)]
)
def test_files_are_packed_for_those_who_accept_it(client: TestClient, accepted: str, is_packed: bool) -> None:
    folder = re.findall(r'src="(dashboard/\w+)/main.js"', client.get("/").text)[0]
    answer = client.get(f"/{folder}/main.js", headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("content-encoding") == "gzip") == is_packed
    assert (int(answer.headers["content-length"]) < len(answer.content) / 3) == is_packed
    assert answer.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_its_type_and_revalidated_by_browsers(client: TestClient, name: str) -> None:
    answer = client.get(f"/dashboard/{name}")
    assert answer.status_code == 200
    kinds = {"js": "javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}
    assert kinds[name.rpartition(".")[2]] in answer.headers["content-type"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get(f"/dashboard/{name}", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_everything_that_the_page_and_its_modules_name_is_there(client: TestClient) -> None:
    page = client.get("/").text
    references = set(_REFERENCE.findall(page))
    folder = next(each for each in references if each.endswith("/main.js")).removesuffix("/main.js")
    sheet = client.get(f"/{folder}/style.css").text
    assert all((FOLDER / name).read_text() in sheet for name in ("style.css", "pages.css", "lists.css"))
    # The preloads are the modules that the entry imports statically.
    within = ["main.js"]
    for module in within:
        found = _MODULE.findall(SCRIPTS[module])
        within += [name for each in found if (name := each.removeprefix("./")) not in within]
    assert len(within) > 10
    # The page contains this script, and the first sheet contains the others.
    parts = {"preload.js", "pages.css", "lists.css"}
    others = [name for name in {*FILES, *SCRIPTS} if name not in {"index.html", *within[1:], *parts}]
    for module in [name for name in others if name.endswith(".js")]:
        imported = _IMPORTED.findall(client.get(f"/{folder}/{module}").text)
        references |= {f"{folder}/{later or at_once}" for later, at_once in imported}
    assert {f"{folder}/{name}" for name in others} | {"docs"} == references
    for reference in references:
        answer = client.get(f"/{reference}")
        assert answer.status_code == 200, reference
        assert ("immutable" in answer.headers.get("cache-control", "")) == (reference != "docs")
        assert answer.headers.get("x-content-type-options") == "nosniff" or reference == "docs"
    # A replica with another version has this address.
    other = client.get("/dashboard/0123456789abcdef/main.js")
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-cache")
    modules = [(name, found) for name, text in SCRIPTS.items() for found in _MODULE.findall(text)]
    assert len(modules) > 10
    for name, found in modules:
        assert found.removeprefix("./") in SCRIPTS, f"{name} imports {found}"


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_another_host_or_makes_markup_of_data(name: str) -> None:
    text = (FOLDER / name).read_text().replace(_NAMESPACE, "")
    assert not re.search(r"""(https?:|wss?:|["'(])//""", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
    # The content security policy forbids inline scripts and styles.
    assert not re.search(r"""<style|\sstyle=|\son\w+="|"style"|javascript:""", text)


@pytest.mark.parametrize(
    "path", ["/dashboard/none.js", "/dashboard/0/none.js", "/dashboard/../app.py", "/dashboard/%2e%2e/api/app.py"]
)
def test_a_path_outside_of_the_dashboard_is_answered_with_a_problem_document(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["type"] == "/problems/route-not-found"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service for all tests of this file; each test looks at another part of it. Policies start
    nothing."""
    yield from _serving(tmp_path_factory.mktemp("service"), automatic="false")


@pytest.fixture
def with_policies(tmp_path: Path) -> Iterator[str]:
    yield from _serving(tmp_path, automatic="true")


@pytest.fixture
def with_tokens(tmp_path: Path) -> Iterator[str]:
    for url in _serving(tmp_path, automatic="false"):
        assert ended("token", "create", "--role", "reader", cwd=tmp_path, env=os.environ).returncode == 0
        yield url


def _serving(folder: Path, automatic: str) -> Iterator[str]:
    """Yields the URL of a service with a refused and a queued job and two tables: one does not exist, the other has
    been polled."""
    engine = open_sqlite(folder / "groundskeeper.db")
    now = utc_now()
    profile = {"table_type": "MERGE_ON_READ", "table_version": 9, "warnings": ["Something is dangling."]}
    with writing(engine) as connection:
        table_store.register(
            connection, Registration("tbl_1", "/lake/orders", "<b>orders</b>", now, now, profile=profile)
        )
        trips = Registration("tbl_2", str(_trips(folder)), "trips", now, now, index=BucketIndex(4, ("id",)))
        table_store.register(connection, trips)
        store.put_table(connection, "tbl_1", TableLevel({"cleaning": {"cron": "0 3 * * 6", "retain": 4}}, now))
        because = "7 commits since the last compaction, threshold 5; but the table's policy has paused it"
        decision = Decision(JobKind.COMPACTION, Verdict.WAIT, "paused", because, now, now, warning="A plan is old.")
        decision_store.record(connection, "tbl_1", [decision], {})
    engine.dispose()
    with Serving(folder, AUTOMATIC=automatic) as serving:
        _refuse_one_job_and_queue_another(serving.url)
        _wait_for(f"{serving.url}/v1/tables/tbl_2/snapshot")
        yield serving.url


def _trips(folder: Path) -> Path:
    """Writes a table with two buckets, an upsert on one of them, and a scheduled compaction."""
    table = SmallTable(folder / "trips")
    files = {base_file(bucket_id(0), "001"): 4096, base_file(bucket_id(1), "001"): 2048}
    table.commit("001", {"p": files}, rows=7)
    table.commit("003", {"p": {log_file(bucket_id(0), "003"): 1024}})
    table.schedule("005", "compaction")
    return table.base


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + 60
    while httpx.get(address).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _refuse_one_job_and_queue_another(url: str) -> None:
    with httpx.Client(base_url=f"{url}/v1") as api:
        clustering = {"kind": "clustering", "params": {"sort_by": ["nope"]}}
        job = api.post("/tables/tbl_1/jobs", json=clustering).json()["id"]
        api.post("/worker/leases", json={"worker_id": "w"})
        refusal = Problem("column-unknown", "The table has no such column", "nope", "Its columns are id and city.")
        result = Result(Outcome.FAILED, details={"refusals": [refusal.to_json()], "seconds": 1.25}, error=refusal)
        ended = api.post(f"/worker/leases/{job}/result", json={"attempt": 1, "result": result.to_json()})
        assert ended.json() == {"state": "failed", "next": None}
        assert api.post("/tables/tbl_1/jobs", json={"kind": "audit"}).status_code == 202


@pytest.fixture
def dom(page: Page, faults: Faults) -> Callable[[str], str]:
    """The page after it has loaded its data. A test names its service first, so that the page is closed before the
    service ends."""
    # A table that was never polled has no snapshot.
    faults.allow(r"404 .*/snapshot|status of 404")
    # There is no table at these paths, so no lock can be read.
    faults.allow(r"422 .*/lock|status of 422")

    def open_page(address: str) -> str:
        page.goto("about:blank")  # A change of the fragment alone would not load the page anew.
        page.goto(address)
        page.wait_for_selector("#pulse.live, input[name=token], .swagger-ui .opblock")
        return page.content()

    return open_page


def _words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_browser_shows_first_what_is_wrong_then_the_tables_and_the_jobs(url: str, dom: Callable[[str], str]) -> None:
    with httpx.Client(base_url=f"{url}/v1") as api:
        assert api.put("/tables/tbl_2/policy", json={"clustering": {"enabled": True}}).status_code == 200
        deadline = time.monotonic() + 60
        while not api.get("/problems", params={"severity": "critical"}).json()["items"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    words = _words(dom(f"{url}/"))
    first, _, rest = words.partition("Active jobs")
    assert re.search(
        r"1 critical 1 warning 1 notice 0 incidents .* Problems \(3\) critical The table cannot be read"
        " &lt;b&gt;orders&lt;/b&gt; ",
        first,
    )
    assert "warning The policy asks for a table service that can never run trips" in first
    assert "critical The table cannot be read +1 1 remark" in rest
    assert "&lt;b&gt;orders&lt;/b&gt; /lake/orders · MOR v9" in words
    assert re.search(
        r"1 queued, about .{1,60} with 1 slot .* Active jobs Audit on &lt;b&gt;orders&lt;/b&gt; queued waits .* Cancel",
        words,
    )
    assert "Au Cl" in words
    assert "live" in words
    words = _words(dom(f"{url}/#/jobs"))
    assert re.search(r"Clustering &lt;b&gt;orders&lt;/b&gt; failed .* The table has no such column", words)


@pytest.mark.exhaustive
def test_a_browser_shows_why_a_job_was_refused_and_a_form_for_the_next(url: str, dom: Callable[[str], str]) -> None:
    failed = httpx.get(f"{url}/v1/jobs", params={"state": "failed"}).json()["items"][0]["id"]
    job = _words(dom(f"{url}/#/jobs/{failed}"))
    assert "The job was refused, for 1 reason: The table has no such column nope Its columns are id and city." in job
    assert "Run time 1.3 s" in job
    assert "Sort by nope Layout linear" in job
    table = _words(dom(f"{url}/#/tables/tbl_1?tab=jobs"))
    assert "Start a job" in table
    assert "Dry run: show the plan, change nothing" in table


def test_a_browser_shows_the_state_of_a_table_and_its_commits(url: str, dom: Callable[[str], str]) -> None:
    table = _words(dom(f"{url}/#/tables/tbl_2"))
    assert "Base files 2, 6.0 KiB Logs 1, 1.0 KiB, 17 % of the base files Small files 2, 6.0 KiB" in table
    assert "Rows in base files 14" in table
    assert "Since compaction 2 commits, 7.0 KiB" in table
    assert "Pending instants 005 compaction, planned" in table
    table = _words(dom(f"{url}/#/tables/tbl_2?tab=timeline"))
    assert re.search(
        r"Timeline Period .* Deltacommit 003 UPSERT, completed .* 2 completed Compaction 005 planned", table
    )
    assert re.search(r"Last commits .* Upsert 003 .* 1.0 KiB 1 Upsert 001 .* 6.0 KiB 1", table)
    table = _words(dom(f"{url}/#/tables/tbl_2?tab=files"))
    assert "Base files by size below 1.0 MiB below 1.0 MiB: 2 base files 2" in table
    assert "Buckets of each partition p Bucket 0: 5.0 KiB Bucket 1: 2.0 KiB empty empty 7.0 KiB, 2.9 \u00d7" in table
    other = _words(dom(f"{url}/#/tables/tbl_1"))
    assert "No poll of the table has succeeded yet" in other
    assert "/lake/orders does not exist" in other


@pytest.mark.exhaustive
def test_a_browser_shows_what_was_decided_and_the_policy_behind_it(url: str, dom: Callable[[str], str]) -> None:
    words = _words(dom(f"{url}/#/tables/tbl_1?tab=policy"))
    assert re.search(
        r"Automatic jobs A plan is old\. Compaction waits .{3,20} 7 commits since the last compaction, threshold 5",
        words,
    )
    assert "Policy Compaction after 5 commits Cleaning at 0 3 * * 6 (UTC); keeps 4 commits Bucket expansion" in words
    assert "Bucket expansion suggested above 3.0 GiB in a bucket" in words
    assert re.search(r"Off [^.]*Clustering", words)
    assert (
        '2 settings other than the default cleaning.cron "0 3 * * 6" from table cleaning.retain 4 from table' in words
    )
    job = httpx.get(f"{url}/v1/jobs", params={"kind": "audit"}).json()["items"][0]["id"]
    assert "Submitted by anybody" in _words(dom(f"{url}/#/jobs/{job}"))


@pytest.mark.exhaustive
def test_a_browser_shows_that_all_upkeep_is_paused(
    url: str, dom: Callable[[str], str], request: pytest.FixtureRequest
) -> None:
    httpx.put(f"{url}/v1/pause", json={"reason": "The storage is being moved."})
    request.addfinalizer(lambda: httpx.delete(f"{url}/v1/pause", headers={"Content-Type": "application/json"}))
    assert re.search(r"Anybody paused automatic jobs on .{5,40} The storage is being moved\.", _words(dom(f"{url}/")))


def test_a_browser_shows_a_stale_commit_and_offers_to_repair_it(
    with_policies: str, dom: Callable[[str], str], tmp_path: Path
) -> None:
    url = with_policies
    trips = SmallTable.standing(tmp_path / "trips")
    files = {"p": {base_file(bucket_id(0, tail=2), "007"): 10}}
    trips.commit("007", files, action="replacecommit", operation="CLUSTER", replaced={"p": [bucket_id(0)]})
    trips.commit("009", {"p": {log_file(bucket_id(0), "009"): 10}}, operation="DELETE_PREPPED", rows=7)
    with httpx.Client(base_url=f"{url}/v1") as api:
        api.put("/tables/tbl_2/policy", json={"repair": {"mode": "suggest"}})
        body = {"basePath": str(trips.base), "commitTime": "009", "tableName": "trips"}
        assert api.post("/callbacks/hudi", json=body).status_code < 300
        deadline = time.monotonic() + 60
        while not (
            api.get("/incidents").json()["items"]
            and "suggest" in [each["verdict"] for each in api.get("/tables/tbl_2/decisions").json()["items"]]
        ):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    told = (
        "A commit wrote to file groups that had been replaced No reader sees the 7 rows that 009 (DELETE_PREPPED) wrote"
    )
    overview = _words(dom(f"{url}/"))
    assert "critical Rows are misplaced, or may be trips Start a repair" in overview
    remedy = "Start a repair: it moves the rows to where they belong. Until then nothing is cleaned."
    command = """groundskeeper jobs run repair tbl_2 --param 'instants=["009"]'"""
    table = _words(dom(f"{url}/#/tables/tbl_2"))
    assert f"{remedy} {command} Copy Repair" in table
    assert told in table
    assert re.search(r"Next: Repair suggested 1 commit wrote to file groups that had been replaced", table)


@pytest.mark.exhaustive
def test_a_browser_shows_the_webhooks_and_what_was_sent(url: str, dom: Callable[[str], str]) -> None:
    wanted = {"url": "https://hooks.example/", "types": ["table.*"], "description": "chat alerts"}
    with httpx.Client(base_url=f"{url}/v1") as api:
        assert api.post("/webhooks", json=wanted).status_code == 201
    words = _words(dom(f"{url}/#/webhooks"))
    assert "Webhooks (1)" in words
    assert "chat alerts https://hooks.example/ table.* new 0 0 never Test Disable" in words
    with httpx.Client(base_url=f"{url}/v1") as api:
        hook = api.get("/webhooks").json()["items"][0]["id"]
    words = _words(dom(f"{url}/#/webhooks/{hook}"))
    assert "Webhook chat alerts https://hooks.example/" in words
    assert "No matching deliveries." in words


def test_a_browser_shows_that_a_job_waits_for_the_writers_and_how_to_say_that_they_were_stopped(
    url: str, dom: Callable[[str], str]
) -> None:
    with httpx.Client(base_url=f"{url}/v1") as api:
        engines = {"writers": {"hudi_version": "1.2.0", "engines": ["flink", "spark"]}}
        assert api.patch("/tables/tbl_2", json=engines).status_code == 200
        expansion = {"kind": "bucket_expansion", "params": {"num_buckets": 8}}
        job = api.post("/tables/tbl_2/jobs", json=expansion).json()["id"]
        shown = _words(dom(f"{url}/#/jobs/{job}"))
        assert "Hand-over by the writers State draining" in shown
        assert "Flink writes this table, and somebody has to stop it. The writers were stopped" in shown
        assert "waits for the writers to stop" in shown
        assert "Engines flink, spark" in _words(dom(f"{url}/#/tables/tbl_2?tab=writers"))
        api.post(f"/jobs/{job}/writers-stopped", json={"savepoint": "s3://sp/1"})
        shown = _words(dom(f"{url}/#/jobs/{job}"))
        assert "State stopped" in shown
        assert "Savepoint s3://sp/1" in shown
        api.post(f"/jobs/{job}/cancel")


@pytest.mark.exhaustive
def test_a_browser_asks_to_log_in_where_a_token_is_needed(
    with_tokens: str, dom: Callable[[str], str], faults: Faults
) -> None:
    faults.allow("401")
    assert httpx.get(f"{with_tokens}/v1/tables").status_code == 401
    page = dom(f"{with_tokens}/")
    assert re.search(r'<input name="token" type="password"', page)
    assert "Log in" in _words(page)
    assert "orders" not in page


@pytest.mark.exhaustive
def test_a_browser_shows_who_changed_what(url: str, dom: Callable[[str], str]) -> None:
    httpx.put(f"{url}/v1/policies/night_*", json={"precedence": 3})
    httpx.delete(f"{url}/v1/policies/day_*", headers={"Content-Type": "application/json"})
    words = _words(dom(f"{url}/#/audit"))
    assert "anybody admin, 127.0.0.1 Put policy" in words
    assert "Call PUT /v1/policies/{pattern:path} Pattern night_* Settings {} Precedence 3" in words
    assert "night_* policy night_* done 201" in words
    assert "policy day_* refused 404 policy-not-found" in words


@pytest.mark.exhaustive
def test_a_browser_shows_the_documentation_of_the_api_by_its_own_scripts_alone(
    url: str, dom: Callable[[str], str]
) -> None:
    page = dom(f"{url}/docs")
    shown = _words(page)
    assert "Runs compaction, cleaning, clustering and bucket expansion on Apache Hudi tables" in shown
    assert "/v1/tables/{table_id}/jobs" in re.sub("\u200b", "", shown)


def test_the_page_of_the_api_loads_nothing_from_other_hosts(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    assert client.get("/docs/").text == page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(sources) >= 3
    for source in sources:
        assert source.startswith("/")
        assert client.get(source).status_code == 200
