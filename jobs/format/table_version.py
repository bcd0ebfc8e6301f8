"""The version of a table (`hoodie.table.version`), where its timeline and its files are read by it."""

from __future__ import annotations

WITH_COMPLETION_TIMES = 8
"""The first table version whose completed instants have their completion time in their name, and whose clustering plans
are an action of their own. Since then a log is named by its writer and belongs to a file slice by the time of its
completion; before, it is named by its slice."""
