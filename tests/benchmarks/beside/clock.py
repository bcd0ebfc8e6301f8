"""The clock and the zone of a writer's processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.integration.writer_session import ENVIRONMENT

_LIBRARY = "libfaketimeMT.so.1"


@dataclass(frozen=True)
class Clock:
    """`zone` is that of its JVMs (None: the machine's); `skew_seconds` is how far its clock is ahead of the machine's.

    Files keep the time of the storage.
    """

    zone: str | None = None
    skew_seconds: float = 0.0

    @property
    def java_options(self) -> list[str]:
        return [f"-Duser.timezone={self.zone}"] if self.zone else []

    @property
    def spark_conf(self) -> dict[str, str]:
        """Of a session in local mode."""
        zone = {"spark.driver.extraJavaOptions": " ".join(self.java_options)} if self.zone else {}
        return zone | {f"{ENVIRONMENT}{name}": value for name, value in self.environment.items()}

    @property
    def environment(self) -> dict[str, str]:
        """What a JVM needs beside its own environment. Raises FileNotFoundError without libfaketime."""
        if not self.skew_seconds:
            return {}
        found = next(Path("/usr/lib").glob(f"*/faketime/{_LIBRARY}"), None)
        if found is None:
            raise FileNotFoundError(f"{_LIBRARY} is missing: a clock that is wrong needs libfaketime")
        return {
            "LD_PRELOAD": str(found),
            "FAKETIME": f"{self.skew_seconds:+f}s",
            # Whoever waits for a while waits by this one.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
