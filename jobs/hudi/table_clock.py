"""The clock of one table: every instant that Hudi makes for a job lies in the frame of the table's writers.

Hudi 1.2.0 names instants by `TimeGenerator.generateTime`, the time of the machine, and formats them in the zone of the
JVM. It looks a generator up by base path if it may share one (`_hoodie.time.generator.reuse.enable`). So while a job
runs, one of ours is there for the paths of its table and of its metadata table; requested and completion times of all
that Hudi does by itself pass it. It knows the frame, and the greatest moment on the timeline, as of the last time that
the table's lock was taken. Other tables, Spark and the zone of the JVM stay as they are.
"""

from __future__ import annotations

import logging
import re
import threading
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import get_java_class

from jobs.errors import ClocksDisagreeError, JobError
from jobs.format.clock_frame import TOLERANCE, ClockFrame, Stamped, appeared_before, frame_of, utc_now
from jobs.format.instants import instant_of, wall_clock
from jobs.hudi.jvm import translated
from jobs.hudi.options import LENT_LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.hudi.jvm import Jvm
    from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

_LISTED = re.compile(r"path=([^,]*?), length=\d+,[^}]*?modificationTime=(\d+)")
_MILLISECOND = timedelta(milliseconds=1)
# Storages stamp their files to the second, and a request takes its time.
_STORAGE_IS_OFF = timedelta(seconds=2)

_SOURCE = """
package groundskeeper;

import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Date;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.hudi.common.config.HoodieTimeGeneratorConfig;
import org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator;
import org.apache.hudi.common.table.timeline.SkewAdjustingTimeGenerator;
import org.apache.hudi.storage.StorageConfiguration;

public class TableClock extends SkewAdjustingTimeGenerator {
  // Compared as texts, it is before all instants; and this one is after them.
  private static final String LOWEST = "0";
  private static final long HIGHEST = 253370764800000L; // In the year 9999.

  private final transient AtomicReference lastInstant;
  private final transient ThreadLocal asked = new ThreadLocal();
  private final long skew;
  private final long patience;
  private boolean isKnown;
  private long shift;
  private long latest;
  private long last;

  public TableClock(HoodieTimeGeneratorConfig config, StorageConfiguration storage, AtomicReference lastInstant,
                    long patience) {
    super(config, storage);
    this.lastInstant = lastInstant;
    this.skew = config.getMaxExpectedClockSkewMs();
    this.patience = patience;
  }

  // Of the frame, in milliseconds from this machine's clock to the slowest writer's; and the greatest moment on the
  // timeline, as milliseconds since 1970 by its text.
  public synchronized void know(boolean isKnown, long shift, long latest) {
    this.isKnown = isKnown;
    this.shift = shift;
    this.latest = Math.max(this.latest, latest);
  }

  // `HoodieInstantTimeGenerator.createNewInstantTime` calls this until the text is after the last one that it made for
  // any table, which may be hours ahead of this one's frame. So that one is forgotten: it is replaced, the caller gets
  // what is after everything, fails to put that in the place of what it read before, and asks again.
  public long generateTime(boolean skipLocking) {
    Object before = lastInstant.get();
    if (!LOWEST.equals(before) || before == asked.get()) {
      lastInstant.set(new String(LOWEST));
      return HIGHEST;
    }
    asked.set(before);
    if (!skipLocking) {
      lock();
    }
    try {
      return next();
    } finally {
      if (!skipLocking) {
        unlock();
      }
    }
  }

  public void consumeTime(boolean skipLocking, Consumer consumer) {
    if (!skipLocking) {
      lock();
    }
    try {
      consumer.accept(Long.valueOf(next()));
    } finally {
      if (!skipLocking) {
        unlock();
      }
    }
  }

  // The next moment, as the time that is formatted as its text. Returns when the slowest writer's clock has passed it.
  private synchronized long next() {
    long now = System.currentTimeMillis();
    long after = Math.max(latest, last) + 1;
    long shown = isKnown ? Math.max(now + shift, after) : latest > 0 ? after : Math.max(shown(now), after);
    last = shown;
    long wait = isKnown ? Math.min(shown - (now + shift), patience) : 0;
    try {
      Thread.sleep(Math.max(skew, wait));
    } catch (InterruptedException e) {
      throw new org.apache.hudi.exception.HoodieException("Interrupted when get the current time", e);
    }
    long formatted = shown;
    for (int i = 0; i < 3; i++) {
      formatted += shown - shown(formatted);
    }
    return formatted;
  }

  private static long shown(long time) {
    String text = HoodieInstantTimeGenerator.formatDateBasedOnTimeZone(new Date(time));
    return LocalDateTime.parse(text, HoodieInstantTimeGenerator.MILLIS_INSTANT_TIME_FORMATTER)
        .toInstant(ZoneOffset.UTC).toEpochMilli();
  }
}
"""


class TableClock:
    """The clock of a table; before the first `look`, that of this process."""

    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._generator: Any = None
        self._files: list[Stamped] = []
        # From this machine's clock to the storage's.
        self._storage_ahead = timedelta()
        self.frame = ClockFrame()

    @contextmanager
    def kept(self, *, writes: bool) -> Iterator[None]:
        """Lets Hudi name this table's instants in the frame of its writers. A job that `writes` may measure more."""
        jvm = self._table.jvm
        with translated("setting the clock of the table"):
            self._generator = _new_generator(jvm, self._table.base_path)
            paths = _paths(self._table)
            _generators(jvm).share(self._generator, paths)
        try:
            if writes:
                self._storage_ahead = self._measured_storage()
            self.look()
            yield
        finally:
            self._generator = None
            with translated("resetting the clock"):
                _generators(jvm).withdraw(paths)

    def look(self) -> None:
        """Reads the timeline: from now on, instants are after all that is on it. Call it when the lock was taken."""
        self._files = self._listed()
        self.frame = frame_of(self._files, version=self._table.version, ingestion=self._ingestion)
        if self._generator is not None:
            slowest, latest = self.frame.slowest, self.frame.latest
            shift = (slowest or timedelta()) + self._storage_ahead
            since_1970 = (latest - datetime(1970, 1, 1)) if latest else timedelta()  # noqa: DTZ001 - text of no zone
            with translated("setting the clock of the table"):
                self._generator.know(slowest is not None, shift // _MILLISECOND, since_1970 // _MILLISECOND)

    def verify(self, instant: str | None = None) -> None:
        """Raises `ClocksDisagreeError` unless what is made now, with the lock held, is in order for every writer.

        With `instant`, ours, that also goes for what writers have made since.
        """
        frame = self.frame
        if frame.disagreement is not None:
            raise ClocksDisagreeError(
                f"Some writers of this table name their instants {_spoken(frame.disagreement.one)} and others "
                f"{_spoken(frame.disagreement.other)}, since {frame.disagreement.since:%Y-%m-%d %H:%M} UTC."
            )
        if (behind := frame.behind(utc_now() + self._storage_ahead)) > frame.tolerance:
            raise ClocksDisagreeError(
                f"The clock of the newest write, {_spoken(frame.offset or timedelta())} since {frame.since:%H:%M:%S} "
                f"UTC, is {behind.total_seconds():.0f} s behind the last instant on the timeline, {frame.latest}.",
                retriable=True,
            )
        if instant is None:
            return
        late = appeared_before(self._files, instant, ingestion=self._ingestion, tolerance=frame.tolerance)
        if late:
            raise ClocksDisagreeError(
                f"{late[0]} appeared on the timeline after {instant} did, although it says that it was before.",
                retriable=True,
            )

    # -- moments in the frame, for what goes by the age of instants

    def now(self) -> datetime:
        """Returns the current time in the frame of the table's instants, never before the last of them."""
        at = utc_now()
        at = at + self._own_offset() if self.frame.offset is None else at + self._storage_ahead + self.frame.offset
        return max(at, self.frame.latest or at)

    def moment(self, milliseconds: int) -> datetime:
        """Converts a file's time to the frame of the table's instants."""
        offset = self._own_offset() if self.frame.offset is None else self.frame.offset
        return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None) + offset

    def completed(self, text: str) -> str:
        """Returns a completion time, as Hudi gives it, in the frame.

        Before table version 8 it is the time of a file, which Hudi formats in the zone of its own process
        (`InstantGeneratorV1`).
        """
        if not text or self.frame.offset is None or self._table.version >= 8:
            return text
        return instant_of(wall_clock(text) - _local_offset() + self.frame.offset)

    def _own_offset(self) -> timedelta:
        is_utc = self._table.properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC"
        return timedelta() if is_utc else _local_offset()

    @property
    def _ingestion(self) -> str:
        return "deltacommit" if self._table.is_merge_on_read else "commit"

    def _listed(self) -> list[Stamped]:
        table = self._table
        with translated("listing the timeline"):
            storage, folder = table.meta.getStorage(), table.meta.getTimelinePath()
            listed = str(storage.listDirectEntries(folder).toString())
        return [
            Stamped(path.rpartition("/")[2], datetime.fromtimestamp(int(written) / 1000, UTC).replace(tzinfo=None))
            for path, written in _LISTED.findall(listed)
        ]

    def _measured_storage(self) -> timedelta:
        """Returns by how much the storage's clock is ahead of this machine's, by a file that is made and removed.

        Zero if they differ by less than what a request and a stamp to the second explain, or if it cannot be told.
        """
        jvm, table = self._table.jvm, self._table
        path = jvm.hudi.storage.StoragePath(f"{table.base_path}/.hoodie/.aux/.clock-{uuid.uuid4().hex}")
        try:
            with translated("reading the storage's clock", expected=JobError):
                storage = table.meta.getStorage()
                before = utc_now()
                storage.create(path).close()
                after = utc_now()
                stamped = int(storage.getPathInfo(path).getModificationTime())
                storage.deleteFile(path)
        except JobError:
            return timedelta()
        at = datetime.fromtimestamp(stamped / 1000, UTC).replace(tzinfo=None)
        if before - _STORAGE_IS_OFF <= at <= after + _STORAGE_IS_OFF:
            return timedelta()
        ahead = at - after
        logger.warning("the clock of the storage is %.0f s ahead of this machine's", ahead.total_seconds())
        return ahead


class _Generators:
    """Hudi's generators by base path, in one JVM. They are shared only while a job has one of ours there."""

    def __init__(self, java: Any) -> None:
        kinds = java.org.apache.hudi.common
        generators = get_java_class(kinds.table.timeline.TimeGenerators)
        instants = get_java_class(kinds.table.timeline.HoodieInstantTimeGenerator)
        cache = generators.getDeclaredField("TIME_GENERATOR_CACHE")
        last = instants.getDeclaredField("LAST_INSTANT_TIME")
        self._option = kinds.config.HoodieTimeGeneratorConfig.TIME_GENERATOR_REUSE_ENABLE
        self._default = self._option.getClass().getDeclaredField("defaultValue")
        for field in (cache, last, self._default):
            field.setAccessible(True)
        self._by_path, self.last_instant = cache.get(None), last.get(None)
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(generators.getClassLoader())
        compiler.cook(_SOURCE)
        self.kind = compiler.getClassLoader().loadClass("groundskeeper.TableClock")
        self._users = 0
        self._changing = threading.Lock()

    def share(self, generator: Any, paths: set[str]) -> None:
        with self._changing:
            self._users += 1
            for path in paths:
                self._by_path.put(path, generator)
            # Hudi takes no such option for the clients of the metadata table, so it is changed for all.
            self._default.set(self._option, True)

    def withdraw(self, paths: set[str]) -> None:
        with self._changing:
            self._users -= 1
            for path in paths:
                self._by_path.invalidate(path)
            if not self._users:
                self._default.set(self._option, False)
                self.last_instant.set("0")


def _new_generator(jvm: Jvm, base_path: str) -> Any:
    properties = jvm.hudi.common.config.TypedProperties()
    for key, value in LENT_LOCK.items():
        properties.setProperty(key, value)
    builder = jvm.hudi.common.config.HoodieTimeGeneratorConfig.newBuilder()
    config = builder.fromProperties(properties).withPath(base_path).build()
    shared = _generators(jvm)
    given = (config, jvm.storage_conf(), shared.last_instant, TOLERANCE // _MILLISECOND)
    return shared.kind.getConstructors()[0].newInstance(jvm.array(given))


def _paths(table: HudiTable) -> set[str]:
    """Returns the paths of the table and of its metadata table, as its clients may spell them."""
    metadata = table.jvm.hudi.metadata.HoodieTableMetadata
    spelled = {table.base_path, str(table.meta.getBasePath().toString())}
    return spelled | {str(metadata.getMetadataTableBasePath(path)) for path in spelled}


@lru_cache(maxsize=1)
def _generators_of(java: Any) -> _Generators:
    return _Generators(java)


_MAKING = threading.Lock()


def _generators(jvm: Jvm) -> _Generators:
    with _MAKING:
        return _generators_of(jvm.java)


def _local_offset() -> timedelta:
    return datetime.now(UTC).astimezone().utcoffset() or timedelta()


def _spoken(offset: timedelta) -> str:
    seconds = round(offset.total_seconds())
    if not seconds:
        return "by UTC"
    return f"{timedelta(seconds=abs(seconds))} {'ahead of' if seconds > 0 else 'behind'} UTC"
