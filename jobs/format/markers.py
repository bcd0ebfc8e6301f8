"""The names of markers, by which a write announces its data files in `.hoodie/.temp/<instant>` (Hudi 1.2.0)."""

from __future__ import annotations

MARKER = ".marker."
"""The middle of a marker's name: the data file comes before it, and the type of the write after it."""

OF_SERVER = "MARKERS"
"""The prefix of the files in which a timeline server writes many markers (`MarkerUtils.MARKERS_FILENAME_PREFIX`)."""

KEPT = f"{OF_SERVER}.groundskeeper"
"""The file in which a job keeps the markers of a write that it has rolled back, in the form of a timeline server."""
