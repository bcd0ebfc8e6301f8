"""The clock and the zone of a writer's JVMs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """`zone` is the zone of the writer's JVMs (None: the machine's). Alternatively `skew_seconds`, a multiple of 60,
    says how far the writer's clock is ahead of UTC.

    Hudi's instants are text of the JVM's zone (`hoodie.table.timeline.timezone` is `LOCAL` by default), so a zone of a
    few minutes gives the same instants as a wrong clock. Raises ValueError if `skew_seconds` is not a multiple of 60,
    or if both are given.
    """

    zone: str | None = None
    skew_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.skew_seconds % 60 or (self.skew_seconds and self.zone):
            raise ValueError("give either a zone, or a skew of whole minutes")

    @property
    def java_options(self) -> list[str]:
        hours, minutes = divmod(int(abs(self.skew_seconds)) // 60, 60)
        skewed = f"GMT{'+' if self.skew_seconds > 0 else '-'}{hours:02}:{minutes:02}" if self.skew_seconds else None
        zone = self.zone or skewed
        return [f"-Duser.timezone={zone}"] if zone else []

    @property
    def spark_conf(self) -> dict[str, str]:
        return {"spark.driver.extraJavaOptions": " ".join(self.java_options)} if self.java_options else {}
