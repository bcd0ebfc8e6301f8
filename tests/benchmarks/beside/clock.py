"""The clock and the zone of a writer's JVMs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """`zone` is that of its JVMs (None: the machine's); `skew_seconds`, whole minutes, is how far its clock is ahead of
    UTC instead.

    Hudi's instants are text of the JVM's zone (`hoodie.table.timeline.timezone` is `LOCAL` by default), so a zone of a
    few minutes makes the same instants as a clock that is wrong. Raises ValueError for other seconds, and for both.
    """

    zone: str | None = None
    skew_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.skew_seconds % 60 or (self.skew_seconds and self.zone):
            raise ValueError("a clock is wrong by whole minutes, and has no other zone then")

    @property
    def java_options(self) -> list[str]:
        hours, minutes = divmod(int(abs(self.skew_seconds)) // 60, 60)
        skewed = f"GMT{'+' if self.skew_seconds > 0 else '-'}{hours:02}:{minutes:02}" if self.skew_seconds else None
        zone = self.zone or skewed
        return [f"-Duser.timezone={zone}"] if zone else []

    @property
    def spark_conf(self) -> dict[str, str]:
        return {"spark.driver.extraJavaOptions": " ".join(self.java_options)} if self.java_options else {}
