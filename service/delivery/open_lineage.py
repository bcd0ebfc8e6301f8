"""Job events as OpenLineage run events (https://openlineage.io/spec/2-0-2/OpenLineage.json).

A run is one attempt of a job. The table is the input of the run, and also its output if the job writes to the table.
Datasets have the names that OpenLineage prescribes for storage, so that events of other tools about the same path refer
to the same datasets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid5

from jobs.kinds.registry import READING
from service.delivery import lineage_facet
from service.events.event import Event, EventType

SCHEME = "openlineage+"
"""Prefix of the `http://` or `https://` of an endpoint."""
MEDIA_TYPE = "application/json"

_SPEC = "https://openlineage.io/spec"
PRODUCER = "urn:groundskeeper:service:"
_PRODUCER = f"{PRODUCER}{version('groundskeeper')}"
_RUNS = UUID("9d0a6b8e-6a53-4d0e-9b43-5e0f3d1c7a11")
_ENDS = {
    EventType.JOB_STARTED: "START",
    EventType.EXPANSION_DRAINING: "RUNNING",
    EventType.JOB_SUCCEEDED: "COMPLETE",
    EventType.JOB_FAILED: "FAIL",
    EventType.JOB_CANCELLED: "ABORT",
    EventType.WEBHOOK_TEST: "OTHER",
}
_OBJECT_STORES = {"s3", "gs", "abfs", "abfss", "wasb", "wasbs"}
_MOST_COLUMNS = 2000
_MOST_CHARACTERS = 4000


@dataclass(frozen=True)
class Statistics:
    """Figures of what was read or written; None if the job does not report them."""

    rows: int | None = None
    bytes: int | None = None
    files: int | None = None

    def facet(self, kind: str) -> dict[str, Any]:
        """Returns the input or output facets; empty if nothing is known. `kind` is `input` or `output`."""
        known = {"rowCount": self.rows, "size": self.bytes, "fileCount": self.files}
        known = {name: value for name, value in known.items() if value is not None}
        if not known:
            return {}
        name, of = (
            ("1-0-2", "OutputStatisticsOutputDatasetFacet")
            if kind == "output"
            else ("1-0-0", "InputStatisticsInputDatasetFacet")
        )
        return {f"{kind}Statistics": {**_facet(name, of), **known}}


@dataclass(frozen=True)
class Facts:
    """Facts from the database about the table and the job of an event, such as the columns with their types."""

    columns: tuple[tuple[str, str], ...] = ()
    read: Statistics = Statistics()
    written: Statistics = Statistics()


def concerns(event: Event) -> bool:
    """Returns whether the event begins, continues or ends a run. `job.queued` after a failed attempt ends the run of
    that attempt."""
    if event.type == EventType.JOB_QUEUED:
        job = event.data["job"]
        return job["attempt"] > 0 and job["error"] is not None
    return event.type in _ENDS


def body(event: Event, namespace: str, facts: Facts) -> bytes:
    """Returns the run event as JSON. `namespace` is that of the jobs. The event must be one for which `concerns` is
    true."""
    return json.dumps(run_event(event, namespace, facts), separators=(",", ":")).encode()


def run_event(event: Event, namespace: str, facts: Facts) -> dict[str, Any]:
    state = _ENDS.get(EventType(event.type), "FAIL")
    document: dict[str, Any] = {
        "eventType": state,
        "eventTime": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    if event.type == EventType.WEBHOOK_TEST:
        return {
            **document,
            "run": {"runId": str(uuid5(_RUNS, event.id)), "facets": {}},
            "job": {"namespace": namespace, "name": event.type, "facets": {}},
            "inputs": [],
            "outputs": [],
        }
    table = event.data["table"]
    job = event.data.get("job") or _of_expansion(event.data["expansion"])
    writes = not job["dry_run"] and job["kind"] not in {kind.value for kind in READING}
    has_ended = state == "COMPLETE"
    dataset = _dataset(table, facts)
    inputs = [{**dataset, "inputFacets": facts.read.facet("input") if has_ended else {}}]
    instant = job["instants"][-1] if job["instants"] else None
    output = dataset
    if has_ended and instant:
        facet = {**_facet("1-0-1", "DatasetVersionDatasetFacet"), "datasetVersion": instant}
        output = {**dataset, "facets": {**dataset["facets"], "version": facet}}
    outputs = [{**output, "outputFacets": facts.written.facet("output") if has_ended else {}}]
    return {
        **document,
        "run": {
            "runId": str(uuid5(_RUNS, f"{job['id']}/{job['attempt']}")),
            "facets": _run_facets(job, table, instant, is_failed=state == "FAIL"),
        },
        "job": {
            "namespace": namespace,
            # The path is used, because names of tables need not be unique.
            "name": f"{table['base_path']}.{job['kind']}",
            "facets": {
                "jobType": {
                    **_facet("2-0-4", "JobTypeJobFacet"),
                    "processingType": "BATCH",
                    "integration": "GROUNDSKEEPER",
                    "jobType": job["kind"].upper(),
                }
            },
        },
        "inputs": inputs,
        "outputs": outputs if writes else [],
    }


def dataset_name(base_path: str) -> tuple[str, str]:
    """Returns namespace and name of the dataset at a path, by the rules of https://openlineage.io/docs/spec/naming."""
    parts = urlsplit(base_path)
    scheme = {"s3a": "s3", "s3n": "s3"}.get(parts.scheme, parts.scheme)
    if scheme in ("", "file"):
        return "file", parts.path or base_path
    path = parts.path.strip("/") if scheme in _OBJECT_STORES else parts.path
    return f"{scheme}://{parts.netloc}", path or "/"


def _run_facets(
    job: Mapping[str, Any], table: Mapping[str, Any], instant: str | None, *, is_failed: bool
) -> dict[str, Any]:
    own = {
        "_producer": _PRODUCER,
        "_schemaURL": lineage_facet.URN,
        "jobId": job["id"],
        "kind": job["kind"],
        "dryRun": job["dry_run"],
        "attempt": job["attempt"],
        "tableId": table["id"],
        "instant": instant,
        "instants": job["instants"],
    }
    facets = {lineage_facet.NAME: own}
    if is_failed and job["error"] is not None:
        error = job["error"]
        message = ": ".join(dict.fromkeys(part for part in (error["title"], error["detail"], error["hint"]) if part))
        facets["errorMessage"] = {
            **_facet("1-0-1", "ErrorMessageRunFacet"),
            "message": message[:_MOST_CHARACTERS],
            "programmingLanguage": "Python",
        }
    return facets


def _dataset(table: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    namespace, name = dataset_name(table["base_path"])
    facets: dict[str, Any] = {
        "dataSource": {
            **_facet("1-0-1", "DatasourceDatasetFacet"),
            "name": namespace,
            "uri": namespace if "://" in namespace else "file:///",
        },
        "storage": {
            **_facet("1-0-1", "StorageDatasetFacet"),
            "storageLayer": "hudi",
            "fileFormat": "parquet",
        },
        "symlinks": {
            **_facet("1-0-1", "SymlinksDatasetFacet"),
            "identifiers": [{"namespace": namespace, "name": table["name"], "type": "TABLE"}],
        },
    }
    if facts.columns:
        fields = [{"name": column, "type": type_} for column, type_ in facts.columns[:_MOST_COLUMNS]]
        facets["schema"] = {**_facet("1-2-0", "SchemaDatasetFacet"), "fields": fields}
    return {"namespace": namespace, "name": name, "facets": facets}


def _of_expansion(expansion: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of a job's event that can be read from an event about an expansion."""
    return {
        "id": expansion["job_id"],
        "kind": expansion["kind"],
        "attempt": expansion["attempt"],
        "dry_run": False,
        "error": None,
        "instants": [expansion["instant"]] if expansion["instant"] else [],
    }


def _facet(version_: str, name: str) -> dict[str, str]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version_}/{name}.json#/$defs/{name}"}
