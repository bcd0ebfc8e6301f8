"""Makes Hudi 1.2.0 ask the clock of a table for its instants.

Hudi names instants by `TimeGenerator.generateTime`, the time of the machine, and formats them in the zone of the JVM.
If generators may be shared (`_hoodie.time.generator.reuse.enable`), Hudi looks one up by base path. So while a job
runs, a `TableClock` is registered for the paths of the job's table and its metadata table. The clock gives all
requested and completion times that Hudi makes by itself. Before table version 8 a completion time is that of its file,
formatted in the zone of the JVM (`InstantGeneratorV1`): `FramedInstants` formats it in the frame. Other tables, Spark
and the zone of the JVM stay as they are.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from py4j.java_gateway import get_java_class

from jobs.hudi import held_files, held_storage, janino
from jobs.hudi.held_locks import held_locks
from jobs.hudi.jvm import Jvm
from jobs.hudi.lent_lock import LENT_LOCK

_IMPORTS = """
import com.github.benmanes.caffeine.cache.Cache;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.Date;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.hudi.common.config.HoodieTimeGeneratorConfig;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator;
import org.apache.hudi.common.table.timeline.SkewAdjustingTimeGenerator;
import org.apache.hudi.common.table.timeline.versioning.v1.InstantGeneratorV1;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;
"""
_SOURCE = """
public class TableClock extends SkewAdjustingTimeGenerator {
  // In the order of texts LOWEST is before all instants, and HIGHEST, which is in the year 9999, after them.
  private static final String LOWEST = "0";
  private static final long HIGHEST = 253370764800000L;

  private final transient AtomicReference lastInstant;
  private final transient ThreadLocal asked = new ThreadLocal();
  private final long skew;
  private final long patience;
  private boolean isKnown;
  private long shift;
  private long latest;
  private long last;
  // The difference of the times in the texts from UTC, in milliseconds; null while nothing is known.
  volatile Long offset;

  public TableClock(HoodieTimeGeneratorConfig config, StorageConfiguration storage, AtomicReference lastInstant,
                    long patience) {
    super(config, storage);
    this.lastInstant = lastInstant;
    // The skew of `config` is not used: it is 1 for the lock that the job lends.
    this.skew = ((Long) HoodieTimeGeneratorConfig.MAX_EXPECTED_CLOCK_SKEW_MS.defaultValue()).longValue();
    this.patience = patience;
  }

  // The frame is `shift` milliseconds from this machine's clock to the slowest writer's; `latest` is the greatest
  // moment on the timeline, as milliseconds since 1970 by its text.
  public synchronized void know(boolean isKnown, long shift, long latest, long offset) {
    this.isKnown = isKnown;
    this.shift = shift;
    this.latest = Math.max(this.latest, latest);
    this.offset = latest > 0 ? Long.valueOf(offset) : null;
  }

  // `HoodieInstantTimeGenerator.createNewInstantTime` calls this method until the text is after the last instant that
  // it has made for any table, which may be hours ahead of this table's frame. So a first call makes Hudi forget that
  // instant: it sets LOWEST in its place and returns HIGHEST. The caller then fails to put HIGHEST in the place of the
  // instant that it had read before, and calls again.
  public long generateTime(boolean skipLocking) {
    HeldLock.require();
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
      Long time = Long.valueOf(next());
      HeldLock.require();
      consumer.accept(time);
    } finally {
      if (!skipLocking) {
        unlock();
      }
    }
  }

  // The next moment, as the time that is formatted as its text. Returns when the slowest writer's clock has passed this
  // moment. If no clock is known, returns after the time that Hudi itself waits for all clocks.
  synchronized long next() {
    long now = System.currentTimeMillis();
    long after = Math.max(latest, last) + 1;
    long shown = isKnown ? Math.max(now + shift, after) : latest > 0 ? after : Math.max(shown(now), after);
    last = shown;
    try {
      Thread.sleep(isKnown ? Math.max(1, Math.min(shown - (now + shift), patience)) : skew);
    } catch (InterruptedException e) {
      throw new HoodieException("Interrupted when get the current time", e);
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

class FramedInstants extends InstantGeneratorV1 {
  private static final Map CLOCKS = new ConcurrentHashMap();

  private transient Cache byPath;
  private transient AtomicReference lastInstant;
  private transient TypedProperties options;

  public FramedInstants() {}

  // Hudi's own generators by path, the last instant that they have made, and options of a generator.
  public void know(Cache byPath, AtomicReference lastInstant, TypedProperties options) {
    this.byPath = byPath;
    this.lastInstant = lastInstant;
    this.options = options;
  }

  public TableClock newClock(String basePath, StorageConfiguration storage, long patience) {
    HoodieTimeGeneratorConfig.Builder config = HoodieTimeGeneratorConfig.newBuilder();
    return new TableClock(
        config.fromProperties(options).withPath(basePath).build(), storage, lastInstant, patience);
  }

  // Both ways in which clients may spell the path of the table, each also for its metadata table.
  public void keep(String one, String other, TableClock clock) {
    for (Iterator each = paths(one, other).iterator(); each.hasNext();) {
      String path = (String) each.next();
      byPath.put(path, clock);
      CLOCKS.put(key(new StoragePath(path)), clock);
    }
  }

  public void forget(String one, String other) {
    for (Iterator each = paths(one, other).iterator(); each.hasNext();) {
      String path = (String) each.next();
      byPath.invalidate(path);
      CLOCKS.remove(key(new StoragePath(path)));
    }
  }

  private static List paths(String one, String other) {
    // `HoodieTableMetadata.getMetadataTableBasePath`
    String metadata = StoragePath.SEPARATOR + HoodieTableMetaClient.METADATA_TABLE_FOLDER_PATH;
    return Arrays.asList(new Object[] {one, other, one + metadata, other + metadata});
  }

  public HoodieInstant createNewInstant(StoragePathInfo file) {
    HoodieInstant instant = super.createNewInstant(file);
    TableClock clock = (TableClock) CLOCKS.get(key(file.getPath().getParent().getParent()));
    Long offset = clock == null ? null : clock.offset;
    if (offset == null) {
      return instant;
    }
    String shown = HoodieInstantTimeGenerator.MILLIS_INSTANT_TIME_FORMATTER.format(
        LocalDateTime.ofInstant(Instant.ofEpochMilli(file.getModificationTime() + offset.longValue()), ZoneOffset.UTC));
    // The offset is too small where the table was copied or upgraded by hand, and nobody has written since: an instant
    // would seem to complete before it began, and its logs to belong to the file slice before.
    String requested = instant.requestedTime();
    String completed = shown.compareTo(requested) < 0 ? requested : shown;
    return createNewInstant(instant.getState(), instant.getAction(), requested, completed, true);
  }

  private static String key(StoragePath path) {
    return path.toUri().getAuthority() + path.toUri().getPath();
  }

  // Executors get Hudi's class, because they do not have `FramedInstants`. Not private, or Janino would rename the
  // method.
  public Object writeReplace() {
    return new InstantGeneratorV1();
  }
}
"""
_HELD = held_storage, held_files
SOURCE = f"package groundskeeper;\n{''.join(each.IMPORTS for each in _HELD)}{_IMPORTS}{_SOURCE}"
SOURCE += "".join(each.SOURCE for each in _HELD)


class InstantGenerators:
    """Hudi's generators by base path, in one JVM. A table's generator is shared only while a job has a clock there.
    `locks` knows who works under the lock of a table (`jobs.hudi.held_locks`), and `files` asks it (`held_files`)."""

    def __init__(self, java: Any) -> None:
        kinds = java.org.apache.hudi.common
        generators = get_java_class(kinds.table.timeline.TimeGenerators)
        instants = get_java_class(kinds.table.timeline.HoodieInstantTimeGenerator)
        self._option = kinds.config.HoodieTimeGeneratorConfig.TIME_GENERATOR_REUSE_ENABLE
        self._default = _field(self._option.getClass(), "defaultValue")
        by_path = _field(generators, "TIME_GENERATOR_CACHE").get(None)
        self._last_instant = _field(instants, "LAST_INSTANT_TIME").get(None)
        holders = held_locks(java)
        kind = janino.compiled(java, SOURCE, "groundskeeper.TableClock", beside=holders)
        self._framed = _new(kind.getClassLoader(), "FramedInstants")
        self.locks = _new(holders.getClassLoader(), "HeldLocks")
        self.files = _new(kind.getClassLoader(), "HeldFiles")
        options = kinds.config.TypedProperties()
        for key, value in LENT_LOCK.items():
            options.setProperty(key, value)
        self._framed.know(by_path, self._last_instant, options)
        classes = _field(get_java_class(kinds.util.ReflectionUtils), "CLAZZ_CACHE").get(None)
        for name, place in held_storage.CLASSES.items():
            classes.put(name, kind.getClassLoader().loadClass(f"groundskeeper.{place}"))
        layout = kinds.table.timeline.TimelineLayout.TIMELINE_LAYOUT_V1
        _field(layout.getClass().getSuperclass(), "instantGenerator").set(layout, self._framed)
        # The clock of each base path, and the number of jobs that use it. A reference here is needed, because Hudi's
        # own map holds the clocks weakly.
        self._clocks: dict[str, tuple[Any, int]] = {}
        self._changing = threading.Lock()

    def take(self, jvm: Jvm, base_path: str, spelled: str, patience: int) -> tuple[Any, bool]:
        """Registers and returns the Java `TableClock` of a table and its metadata table, and whether this job is its
        only user. `spelled` is the path as Hudi spells it. Waits for clocks that are behind for at most `patience`
        milliseconds.
        """
        with self._changing:
            clock, users = self._clocks.get(spelled) or (None, 0)
            clock = clock or self._framed.newClock(spelled, jvm.storage_conf(), patience)
            self._clocks[spelled] = clock, users + 1
            self._framed.keep(base_path, spelled, clock)
            # The clients of the metadata table get no options from the job, so the default is changed for all clients.
            self._default.set(self._option, True)
            return clock, not users

    def give_back(self, base_path: str, spelled: str) -> None:
        with self._changing:
            clock, users = self._clocks.pop(spelled)
            if users > 1:
                self._clocks[spelled] = clock, users - 1
                return
            self._framed.forget(base_path, spelled)
            if not self._clocks:
                self._default.set(self._option, False)
                self._last_instant.set("0")


def _field(kind: Any, name: str) -> Any:
    field = kind.getDeclaredField(name)
    field.setAccessible(True)
    return field


def _new(loader: Any, name: str) -> Any:
    made = loader.loadClass(f"groundskeeper.{name}").getDeclaredConstructors()[0]
    made.setAccessible(True)
    return made.newInstance(None)


@lru_cache(maxsize=1)
def _generators_of(java: Any) -> InstantGenerators:
    return InstantGenerators(java)


_making = threading.Lock()


def instant_generators(jvm: Jvm) -> InstantGenerators:
    """Returns the generators of this JVM; the first call takes about a second."""
    with _making:
        return _generators_of(jvm.java)
