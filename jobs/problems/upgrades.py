"""Refusals of changes of a table's version, and of jobs on a table whose change has not ended."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

VERSION_NOT_OFFERED: Final = ProblemType(
    "version-not-offered",
    "The table cannot get this table version",
    why="Hudi 1.2 writes the table versions 6, 8 and 9. Version 7 was never released. Hudi 1.2 does not write earlier"
    " versions any more, and does not know later ones.",
    example="version 7",
    hint="Ask for 6, 8 or 9.",
)
VERSIONS_NOT_DECLARED: Final = ProblemType(
    "versions-not-declared",
    "Nobody has declared which version of Hudi the table's writers and readers have",
    why="A Hudi that does not know the new table version can neither read nor write the table. Only its owner knows"
    " which versions are in use, so the job does not guess.",
    example="writers: not declared, readers: not declared",
    hint='Declare them: PATCH the table with `{"writers": {"hudi_version": "1.2.0"}, "readers": {"hudi_version":'
    ' "1.2.0"}}`. Or send `undeclared`: true, if you know that all of them can use the version.',
)
HUDI_TOO_OLD_FOR_VERSION: Final = ProblemType(
    "hudi-too-old-for-version",
    "Writers or readers of the table have a Hudi that does not know the new version",
    why="Hudi before 1.0 refuses tables of version 8, and Hudi before 1.1 those of version 9. All jobs and queries with"
    " such a Hudi would fail then.",
    example="version 9 needs Hudi 1.1; writers declared: Hudi 1.0.2",
    hint="Give them a newer Hudi first, and declare its version.",
)
UPGRADE_NOT_PROVED: Final = ProblemType(
    "upgrade-not-proved",
    "A safe change of the version of such a table is not proved",
    why="Hudi's upgrader was not tested with such tables, or its change cannot be undone. The job does not try it on "
    "your rows.",
    example="a savepoint of 20260101120000000: a restore to it would cross the change of the version",
)
TABLE_NOT_CLEAN: Final = ProblemType(
    "table-not-clean",
    "An audit of the table finds damages",
    why="The job proves that rows and files are the same before and after. On a damaged table that proof would mean"
    " nothing, and the upgrade could make the damage permanent.",
    example="metadata-table-out-of-step: 1 file, such as dt=2026-01-01/f1-0_20260101110000000.parquet",
    hint="Run an `audit` and repair what it finds.",
)
UPGRADE_UNFINISHED: Final = ProblemType(
    "upgrade-unfinished",
    "A change of the table's version is under way, or was interrupted",
    why="Until it has ended, some instants are in the timeline of the old version and some in that of the new one. "
    "Whoever reads only one of these timelines misses commits, and a job could take committed files for those of dead "
    "writers.",
    example="from version 6 to 9, by job_01J0000000000000000000000",
    hint="Wait until the `upgrade` job ends. If its worker died and no attempt is left, submit an `upgrade` again: it"
    " first takes the interrupted one back.",
    retriable=True,
)
WRITTEN_SINCE_UPGRADE: Final = ProblemType(
    "written-since-upgrade",
    "Somebody wrote to the table while the change of its version was interrupted",
    why="The interrupted change is taken back by restoring the timeline as it was before. Later instants would be lost "
    "by that, with their rows.",
    example="20260101120000000",
    hint="Stop all writers. The old timeline is in `.hoodie/.aux/groundskeeper.upgrade`. If the table has its new "
    "version and all rows are there, delete that folder, and run an audit.",
)
