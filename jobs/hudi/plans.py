"""Pending plans of table services, read as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobs.errors import JobError
from jobs.format import plan_files
from jobs.format.file_names import parse_log_file_name
from jobs.format.plan_files import Group
from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable

COMPACTION_ACTIONS = frozenset({"compaction", "logcompaction"})
CLUSTERING_ACTIONS = frozenset({"clustering", "replacecommit"})


@dataclass(frozen=True)
class Plan:
    """The plan of a pending instant as JSON of its Avro record; empty if the instant has none or it is unreadable."""

    instant: str
    action: str
    content: dict[str, Any]


def pending_plans(table: HudiTable, actions: frozenset[str]) -> Iterator[Plan]:
    """Yields the plans of the pending instants of these actions, the earliest first."""
    for item in table.instants():
        if item.state == "COMPLETED" or item.action not in actions:
            continue
        content: dict[str, Any] | None = {}
        # An unreadable plan cannot be executed either.
        with suppress(JobError):
            content = _content(table, item.requested)
        if content is not None:
            yield Plan(item.requested, item.action, content)


def plan_of(table: HudiTable, instant: str) -> dict[str, Any]:
    """Returns the plan of one pending instant. Raises CommitLostError if the instant is no longer pending."""
    content = _content(table, instant)
    if content is None:
        raise table.lost(f"instant {instant}")
    return content


def compactions_done(table: HudiTable) -> Iterator[Plan]:
    """Yields the plans of the completed compactions of the active timeline that still exist."""
    for commit in table.commits():
        if commit.write.operation == "COMPACT":
            with suppress(JobError):
                content = json.loads(_compaction(table, commit.write.instant))
                yield Plan(commit.write.instant, "compaction", content)


def add_logs(table: HudiTable, instant: str, missed: Mapping[Group, Collection[str]]) -> None:
    """Adds logs, by file group, to a requested compaction plan (`saveToCompactionRequested`, Hudi 1.2.0)."""
    with translated(f"adding logs to the plan {instant}"):
        meta = table.meta
        plan = table.jvm.hudi.common.util.CompactionUtils.getCompactionPlan(meta, instant)
        for operation in table.jvm.items(plan.getOperations().stream()):
            more = missed.get((str(operation.getPartitionPath() or ""), str(operation.getFileId())), ())
            named = {str(path) for path in table.jvm.items(operation.getDeltaFilePaths().stream())}
            if more:
                names = table.jvm.java.java.util.ArrayList()
                for name in sorted({*named, *more}, key=_version):
                    names.add(name)
                operation.setDeltaFilePaths(names)
        requested = meta.getInstantGenerator().getCompactionRequestedInstant(instant)
        meta.reloadActiveTimeline().saveToCompactionRequested(requested, plan, True)


def _version(name: str) -> tuple[int, str]:
    log = parse_log_file_name(name.rpartition("/")[2])
    return (log.version if log else 0), name


def held_by_plans(table: HudiTable, actions: frozenset[str]) -> dict[Group, str]:
    """Returns the file groups that pending plans of these actions read, each with the instant of its plan. Hudi puts
    such file groups into no other plan."""
    plans = pending_plans(table, actions)
    return {group: plan.instant for plan in plans for group in plan_files.read_by(plan.content)}


def _content(table: HudiTable, instant: str) -> dict[str, Any] | None:
    """Returns the plan of an instant, None if that is no longer pending."""
    with translated(f"reading the plan of {instant}", expected=JobError):
        text = table.jvm.reads.plan(table.meta, instant)
        return None if text is None else dict(json.loads(text))


def _compaction(table: HudiTable, instant: str) -> str:
    with translated(f"reading the plan of {instant}", expected=JobError):
        return str(table.jvm.hudi.common.util.CompactionUtils.getCompactionPlan(table.meta, instant).toString())
