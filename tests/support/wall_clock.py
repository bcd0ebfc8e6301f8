"""The wall clock of another process, which a test can set wrong (libfaketime)."""

from __future__ import annotations

from pathlib import Path

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
NOT_INSTALLED = "libfaketime is not installed: there is no /usr/lib/*/faketime/libfaketimeMT.so.1"


class Wall:
    """The wall clock of a process that runs with `environment`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.set(0)
        self.environment = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, seconds: float) -> None:
        """Sets the clock this far from the true time."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.0f}\n")
        new.replace(self._file)


def shifted(seconds: float) -> dict[str, str]:
    """Returns the environment of a JVM whose clock is this far from the true time for as long as it runs.

    There is no file for later changes, because a JVM would read it at each look at the clock, which takes too long.
    libfaketime's fix of monotonic clocks is off, because it makes timed waits end at once.
    """
    return {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME": f"{seconds:+.0f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }
