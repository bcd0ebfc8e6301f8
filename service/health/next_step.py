"""The next step against a problem: a command to paste and, if a single call of the API does the same, a button for that
call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from jobs.contract import JobKind
from jobs.spec import Documented, Spec
from service.model.command_line import Choice, assigned, line
from service.policies.settings import CleaningSettings
from service.queue.queue_status import starting_worker


@dataclass(frozen=True)
class Action(Documented):
    """A call of the REST API that helps."""

    label: Annotated[str, Spec("For a button", examples=("Compact",))]
    method: Annotated[str, Spec("HTTP method", examples=("POST",))]
    path: Annotated[str, Spec("Address of the call", examples=("/v1/tables/tbl_0f3c2a9d5e7b1c44/jobs",))]
    body: Mapping[str, object] | None = None


LONGEST = 4000
"""Maximum number of characters of a command. A command may name thousands of partitions, and terminals cut longer
lines."""


@dataclass(frozen=True)
class Step:
    command: str  # A line for a shell, in which the user replaces words in angle brackets.
    action: Action | None = None


def start(table_id: str, label: str, kind: JobKind, params: Mapping[str, object] | None = None) -> Step:
    """Returns the step that starts a job."""
    body: dict[str, object] = {"kind": kind.value}
    words = ["jobs", "run", kind.value, table_id]
    if params is not None:
        body["params"] = dict(params)
        for name, value in params.items():
            words += ["--param", assigned(name, value)]
    command = line(*words)
    if len(command) > LONGEST:
        command = show_table(table_id).command
    return Step(command, Action(label, "POST", f"/v1/tables/{table_id}/jobs", body))


def compact(table_id: str) -> Step:
    return start(table_id, "Compact", JobKind.COMPACTION)


def clean(table_id: str, settings: CleaningSettings) -> Step:
    """Returns the step that cleans as the table's policy does."""
    return start(table_id, "Clean", JobKind.CLEANING, {"policy": settings.policy.value, "retain": settings.retain})


def roll_back(table_id: str, instant: str) -> Step:
    return start(table_id, "Roll back", JobKind.ROLLBACK, {"instant": instant})


def diagnose(table_id: str) -> Step:
    return start(table_id, "Diagnose", JobKind.DIAGNOSIS)


def retry(job_id: str) -> Step:
    return Step(line("jobs", "retry", job_id), Action("Try again", "POST", f"/v1/jobs/{job_id}/retry"))


def show_table(table_id: str) -> Step:
    """Returns the step that shows the table's index, polls, state and current decisions."""
    return Step(line("tables", "show", table_id))


def show_lock(table_id: str) -> Step:
    return Step(line("lock", "show", table_id), Action("Look at the lock", "GET", f"/v1/tables/{table_id}/lock"))


def set_policy(table_id: str, *settings: str | tuple[str | Choice, ...]) -> Step:
    return Step(line("policy", "set", table_id, *settings))


def start_worker(group: str) -> Step:
    return Step(starting_worker(group))


def enable_webhook(webhook_id: str, label: str) -> Step:
    """Returns the step that enables a webhook. All waiting deliveries are then tried at once."""
    return Step(line("webhooks", "enable", webhook_id), Action(label, "POST", f"/v1/webhooks/{webhook_id}/enable"))


def replay(webhook_id: str, since: str) -> Step:
    return Step(
        line("webhooks", "replay", webhook_id, "--since", since),
        Action("Replay", "POST", f"/v1/webhooks/{webhook_id}/replay", {"since": since}),
    )
