"""The version of a table (`hoodie.table.version`), as far as reading the timeline and the files depends on it."""

from __future__ import annotations

WITH_COMPLETION_TIMES = 8
"""The first table version whose completed instants have their completion time in their name, and whose clustering plans
are an action of their own. Since this version a log is named by its writer, and its completion time decides to which
file slice it belongs; before, it is named by its file slice."""

UPGRADE_FOLDER = ".hoodie/.aux/groundskeeper.upgrade"
"""The folder that keeps the timeline while a job changes the version. Readers and Hudi's services do not read it."""

UPGRADE_NOTE = f"{UPGRADE_FOLDER}/note.json"
"""The file that exists until the change has ended. The job writes this file last and deletes it first."""
