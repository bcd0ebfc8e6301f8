"""Diagnosis: examines a table for damages that are known to happen to Hudi tables, and names the job that repairs each
one. Writes nothing."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import asdict

from jobs.contract import Outcome, Result, WorkOrder
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.diagnosis import DiagnosisParams, DiagnosisResult
from jobs.services.audit import OF_ROWS, PROOFS
from jobs.services.checks import columns, indexes, metadata_table, remains, table_parts, timeline
from jobs.services.checks.examination import Check, examine

CHECKS: dict[str, Check] = {
    **PROOFS,
    "properties": table_parts.properties,
    "index definitions": table_parts.index_definitions,
    "expression indexes": indexes.expressions,
    "columns of base files": columns.misread,
    "files of unknown instants": timeline.unknown_files,
    "archival": timeline.archival,
    "dead writes": remains.writes,
    "markers": remains.markers,
    "lock": remains.lock,
    "savepoints of repairs": remains.savepoints,
    "files of the metadata table": metadata_table.files,
    **OF_ROWS,
}


def run(table: HudiTable, order: WorkOrder[DiagnosisParams], context: JobContext) -> Result[DiagnosisResult]:
    """Examines the table by its bucket index, or by `index` if it was registered without one.

    Returns `findings`, the names of the checks that were made, and the checks that could not be made, each with the
    reason. If `rows` is false, the checks that read the key of every row are left out. `healthy` means that all checks
    were made and none found anything. Writers may be active meanwhile.
    """
    if (claimed := order.params.index) and table.declared.index is None:
        table = HudiTable(table.jvm, replace(table.declared, index=claimed))
    checks = {name: check for name, check in CHECKS.items() if name not in OF_ROWS or order.params.rows}
    found = examine(table, checks, context)
    healthy = not found.findings and not found.unchecked
    return Result(Outcome.SUCCEEDED, details=DiagnosisResult(**asdict(found), healthy=healthy))
