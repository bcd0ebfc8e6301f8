"""`groundskeeper doctor`: checks this installation, and the service that it calls."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import ProblemKind
from service.cli.check import ABSENT, FAILED, OK, Check
from service.cli.client.command import AsJson, TokenFile, Url, ended_properly
from service.cli.client.connection import Connection, connected
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Output
from service.model.errors import GroundskeeperError

if TYPE_CHECKING:
    from service.runtime.settings import Settings

_STORAGE_SECONDS = 20.0
_SEEN_SECONDS = 60.0
_MOST_JOBS = 50
_STYLES = {OK: "green", FAILED: "red", ABSENT: "yellow"}


def doctor(url: Url = None, token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """Check Java, Hudi's bundle, storage and database of this machine; and the service, its workers, and the locks and
    last jobs of its tables."""
    with ended_properly(Output(as_json=as_json)) as out:
        service = connected(url, token_file)
        checks = []
        for check in _checks(service):
            checks.append(check)
            out.say(f"{check.state:<7} {check.name:<9} {check.detail}", style=_STYLES[check.state])
            if check.hint:
                out.say(f"{'':<17} {check.hint}")
        is_fine = all(check.state != FAILED for check in checks)
        out.document({"ok": is_fine, "checks": [check.to_json() for check in checks]})
        if not is_fine:
            raise typer.Exit(ExitCode.FAILED)


def _checks(connection: Connection) -> Iterator[Check]:
    # The import is made here, so that the other commands start at once.
    from service.cli.lock_check import check_locks
    from service.runtime import settings
    from service.runtime.effective_settings import check_known

    chosen = None
    try:
        check_known()
        chosen = settings.load()
        yield Check("settings", OK, "All variables are known and valid.")
    except GroundskeeperError as error:
        yield _failed("settings", error)
    yield _java()
    if chosen:
        yield _bundle(chosen)
        yield _storage(chosen)
        yield _database(chosen)
    with connection as service:
        found = _service(service)
        yield found
        if found.state == OK:
            yield _worker(service)
            yield from check_locks(service)
            yield from _jobs(service)
        else:
            yield from (Check(name, ABSENT, "Not checked: there is no service.") for name in ("worker", "lock", "jobs"))


def _java() -> Check:
    from jobs.hudi.java import JAVA_VERSION, NoJavaError, java_home
    from jobs.problems.worker_starts import JAVA_UNSUITED

    try:
        program = java_home() / "bin" / "java"
    except NoJavaError as error:
        return Check("java", FAILED, str(error), JAVA_UNSUITED.hint)
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        hint = f"Set JAVA_HOME to a Java {JAVA_VERSION}, or unset it to use the one that pip installed."
        return Check("java", FAILED, f"{program} does not run: {error}", hint)
    lines = [line for line in (ran.stderr + ran.stdout).splitlines() if " version " in line]
    return Check("java", OK, f"{lines[0] if lines else 'Java runs:'} ({program})")


def _bundle(chosen: Settings) -> Check:
    from jobs.hudi.session import BundleMissingError, bundle

    try:
        found = bundle(chosen.jars)
    except BundleMissingError as error:
        return Check("bundle", FAILED, str(error), "Fill the folder: python -m jobs.hudi.fetch_jars FOLDER.")
    if found is None:
        return Check("bundle", ABSENT, "Not fetched yet. The first worker on this machine fetches the bundle (80 MB).")
    return Check("bundle", OK, str(found))


def _storage(chosen: Settings) -> Check:
    from service.lake.location import canonical
    from service.lake.storage import open_storage

    roots = chosen.allowed_roots or ()
    if not roots:
        return Check("storage", ABSENT, "GROUNDSKEEPER_ALLOWED_ROOTS is not set, so there is no place to check.")

    def missing_root() -> str | None:
        for root in roots:
            if not open_storage(canonical(root), chosen.hadoop_options).exists():
                return root
        return None

    try:
        missing = _within(missing_root, _STORAGE_SECONDS)
    except TimeoutError:
        hint = "Check the network, and the endpoint in GROUNDSKEEPER_STORAGE_OPTIONS."
        return Check("storage", FAILED, f"{', '.join(roots)}: no answer within {_STORAGE_SECONDS:g} s.", hint)
    except GroundskeeperError as error:
        return _failed("storage", error)
    if missing:
        return Check("storage", FAILED, f"{missing} does not exist.", "Correct GROUNDSKEEPER_ALLOWED_ROOTS.")
    return Check("storage", OK, f"Can be read: {', '.join(roots)}")


def _database(chosen: Settings) -> Check:
    from service.cli.database import shown, sqlite_file
    from service.db import migrate
    from service.db.engine import open_engine
    from service.db.probe import check_integrity

    try:
        engine = open_engine(chosen.database)
        file = sqlite_file(engine)
        if file is not None and not file.exists():
            return Check("database", ABSENT, f"{shown(engine)} does not exist here. `groundskeeper serve` creates it.")
        check_integrity(engine)
        if not migrate.is_usable(engine):
            hint = "Start this version's service, or run `groundskeeper migrate`."
            return Check("database", FAILED, f"{shown(engine)} does not have the schema of this version.", hint)
        return Check("database", OK, shown(engine))
    except GroundskeeperError as error:
        return _failed("database", error)


def _service(service: Connection) -> Check:
    try:
        service.send(calls.is_ready())
        tables = service.send(calls.list_tables(limit=1))
    except CommandError as error:
        document = error.document
        text = f"{document['title']}: {document.get('detail') or ''}"
        return Check("service", FAILED, text, str(document.get("hint") or ""))
    return Check("service", OK, f"{service.url} is ready" + ("." if tables["items"] else ", without any table yet."))


def _worker(service: Connection) -> Check:
    now = datetime.now(UTC)
    seen = [
        worker
        for worker in service.send(calls.list_workers())["items"]
        if (now - datetime.fromisoformat(worker["last_seen"])).total_seconds() < _SEEN_SECONDS
    ]
    ready = [worker for worker in seen if worker["state"] in ("ready", None)]
    demand = service.send(calls.get_demand())["groups"]
    starved = [
        name for name, each in demand.items() if each["queued"] and not any(worker["group"] == name for worker in ready)
    ]
    hint = f"Start one: groundskeeper worker --service {service.url}"
    if starved:
        return Check("worker", FAILED, f"Jobs wait, and no worker of the group {', '.join(starved)} is ready.", hint)
    if not ready:
        starting = f"{len(seen)} are starting." if seen else "None was seen in the last minute."
        return Check("worker", FAILED, starting, hint)
    return Check("worker", OK, f"Ready: {', '.join(worker['id'] for worker in ready)}")


def _jobs(service: Connection) -> Iterator[Check]:
    kinds = [ProblemKind.JOB_FAILING, ProblemKind.TABLE_NOT_WRITABLE]
    page = service.send(calls.list_problems(kind=kinds, limit=_MOST_JOBS))
    for each in page["items"]:
        yield Check("jobs", FAILED, f"{each['about']['name']}: {each['detail']}", each["remedy"])
    if not page["items"]:
        yield Check("jobs", OK, "No table's last job of a kind has failed.")


def _failed(name: str, error: GroundskeeperError) -> Check:
    return Check(name, FAILED, error.detail or error.title, error.hint)


def _within(work: Callable[[], str | None], seconds: float) -> str | None:
    """Returns the result of the work. Raises its error, or TimeoutError, because a storage may never answer."""
    outcome: list[str | BaseException | None] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
