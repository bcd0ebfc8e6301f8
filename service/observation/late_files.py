"""Checks whether fenced writers have ended, and all their files were removed."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime, timedelta

from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.markers import KEPT
from service.incidents.incident import Incident
from service.lake.file_slices import data_files
from service.lake.storage import Storage
from service.lake.table_config import META_FOLDER

SILENT_AFTER = timedelta(minutes=5)
"""A writer without a heartbeat for this long is dead. A live writer sends a heartbeat every minute
(`hoodie.client.heartbeat.interval_in_ms`, Hudi 1.2). If a rollback has removed the heartbeat's file, the writer creates
it again."""


def resolved(
    storage: Storage, incidents: Sequence[Incident], completed: Container[str], now: datetime
) -> dict[str, str]:
    """Returns the ids of the incidents that have ended, with the reasons.

    Cheap checks come first. All files of the table are listed only if a writer is silent and has no markers any more.
    Before table version 8 the names of log files do not contain the instant that wrote to them. For such tables only
    base files and markers are checked here. The cleaning job looks for blocks that late writers added to log files.
    """
    found = {each.id: "the write completed after all" for each in incidents if each.instant in completed}
    silent = {each.id: each.instant for each in incidents if each.id not in found and _is_silent(storage, each, now)}
    if not silent:
        return found
    still_there = set(silent.values()).intersection(_writers_of_files(storage))
    because = (
        f"no file or marker of the write is left, and its writer has been silent for {SILENT_AFTER.seconds // 60} min"
    )
    return found | {incident_id: because for incident_id, instant in silent.items() if instant not in still_there}


def _is_silent(storage: Storage, incident: Incident, now: datetime) -> bool:
    if now - incident.opened_at < SILENT_AFTER:
        return False
    last = storage.modified_at(f"{META_FOLDER}/.heartbeat/{incident.instant}")
    if last is not None and now - last < SILENT_AFTER:
        return False
    markers = {entry.name for entry in storage.list(f"{META_FOLDER}/.temp/{incident.instant}")}
    # A job may have kept the markers, so they do not show that the writer lives. All files are listed instead.
    return markers <= {KEPT, f".{KEPT}.crc"}


def _writers_of_files(storage: Storage) -> set[str]:
    """Returns the instants in the names of all data files."""
    found = set()
    for entry in data_files(storage):
        name = parse_base_file_name(entry.name) or parse_log_file_name(entry.name)
        if name is not None:
            found.add(name.instant)
    return found
