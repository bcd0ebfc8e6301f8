"""Hudi's engine for Spark, changed to do small work in the driver instead of Spark jobs. Hudi 1.2.0 lists folders,
plans, deletes markers and files by Spark jobs, mostly of one task. Each job takes 10 to 20 ms and as much CPU time, and
only the smallest part of that is the work itself. `DriverEngine` runs functions over short lists in the calling thread,
and over longer ones in several, as Hudi's engine for Java and Flink does (`HoodieLocalEngineContext`). A few records of
the metadata table, and the statuses of written files, become `DriverData`."""

from __future__ import annotations

from typing import Any

from jobs.hudi import driver_data, driver_threads, janino, lazy_data
from jobs.hudi.held_locks import held_locks
from jobs.hudi.java_view import JavaView

# Most elements are a request to the storage. So lists with more elements than the first number are shared by that many
# threads. Spark's executors share the lists of large tables, with more elements than the second number.
_MOST_PIECES, _MOST_SHARED = 16, 256

_IMPORTS = """
import java.util.HashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.hudi.client.SparkRDDWriteClient;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.client.common.HoodieSparkEngineContext;
import org.apache.hudi.common.function.SerializableBiFunction;
import org.apache.hudi.common.function.SerializableConsumer;
import org.apache.hudi.common.function.SerializableFunction;
import org.apache.hudi.common.function.SerializablePairFlatMapFunction;
import org.apache.hudi.common.function.SerializablePairFunction;
import org.apache.hudi.common.model.CompactionOperation;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.util.collection.ImmutablePair;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.data.HoodieJavaRDD;
import org.apache.hudi.metadata.HoodieMetadataPayload;
import org.apache.hudi.table.action.HoodieWriteMetadata;
"""
_SOURCE = """
public class DriverEngine extends HoodieSparkEngineContext {
  private final int most;
  private final DriverThreads threads;
  // The data whose ids Hudi has asked for, until it says for what.
  private final Map asked = new ConcurrentHashMap();

  private final ThreadLocal beginning = new ThreadLocal();

  public DriverEngine(JavaSparkContext spark, int most, int shared) throws ClassNotFoundException {
    super(spark);
    // Hudi (1.2.0) compares the schema of the metadata table by identity, with the object that this class has put into
    // a cache. If a reader were the first to put an equal one there, all writes to metadata tables would fail.
    Class.forName("org.apache.hudi.metadata.HoodieMetadataPayload", true, HoodieMetadataPayload.class.getClassLoader());
    this.most = most;
    threads = new DriverThreads(most, shared);
  }

  // Returns the statuses of files that are already written, made of their `HoodieWriteStat`.
  public JavaRDD written(List stats) {
    List statuses = new ArrayList();
    for (Iterator each = stats.iterator(); each.hasNext();) {
      HoodieWriteStat stat = (HoodieWriteStat) each.next();
      WriteStatus status = new WriteStatus(Boolean.FALSE, Double.valueOf(0.0));
      status.setFileId(stat.getFileId());
      status.setPartitionPath(stat.getPartitionPath());
      status.setTotalRecords(stat.getNumWrites());
      status.setStat(stat);
      statuses.add(status);
    }
    return DriverData.of(jsc(), statuses);
  }

  // Hudi makes as many parts as there are files to index, and Spark refuses to make none: a commit that only drops
  // partitions would fail beside an expression index (`SparkMetadataWriterUtils.getExprIndexRecords`).
  public HoodieData parallelize(List data, int parallelism) {
    if (beginning.get() != null && !data.isEmpty() && data.get(0) instanceof CompactionOperation) {
      return HoodieJavaRDD.of(new LazyData(this, new LazyStep(jsc(), null, data, Math.max(parallelism, 1))));
    }
    return areRecordsOfFiles(data)
        ? HoodieJavaRDD.of(DriverData.of(jsc(), data)) : super.parallelize(data, Math.max(parallelism, 1));
  }

  // Begins a compaction. The data and the readers with their broadcast are made later, and only if anything asks for
  // them.
  public HoodieWriteMetadata beginCompaction(SparkRDDWriteClient client, String instant) {
    beginning.set(Boolean.TRUE);
    try {
      return client.compact(instant, false);
    } finally {
      beginning.remove();
    }
  }

  public ReaderContextFactory getReaderContextFactory(HoodieTableMetaClient meta) {
    return beginning.get() == null || meta.isMetadataTable() ? hudisReaders(meta) : new LazyReaders(this, meta);
  }

  ReaderContextFactory hudisReaders(HoodieTableMetaClient meta) {
    return super.getReaderContextFactory(meta);
  }

  void asked(int id, LazyData data) {
    asked.put(Integer.valueOf(id), data);
  }

  public void putCachedDataIds(HoodieDataCacheKey key, int[] ids) {
    for (int number = 0; number < ids.length; number++) {
      LazyData later = (LazyData) asked.remove(Integer.valueOf(ids[number]));
      if (later == null) {
        super.putCachedDataIds(key, new int[] {ids[number]});
      } else {
        later.isKeptFor(key);
      }
    }
  }

  // Records of the metadata table are processed in the driver; other data of Hudi may be the work of hours.
  private boolean areRecordsOfFiles(List data) {
    if (data.isEmpty() || data.size() > most) {
      return false;
    }
    for (Iterator each = data.iterator(); each.hasNext();) {
      Object record = each.next();
      if (!(record instanceof HoodieRecord && ((HoodieRecord) record).getData() instanceof HoodieMetadataPayload)) {
        return false;
      }
    }
    return true;
  }

  public HoodieData emptyHoodieData() {
    return HoodieJavaRDD.of(DriverData.none(jsc()));
  }

  public List map(List data, final SerializableFunction function, int parallelism) {
    if (!threads.take(data)) {
      return super.map(data, function, parallelism);
    }
    return threads.done(data, new DriverWork() {
      Object of(Object value) throws Exception {
        return function.apply(value);
      }
    });
  }

  public List flatMap(List data, final SerializableFunction function, int parallelism) {
    if (!threads.take(data)) {
      return super.flatMap(data, function, parallelism);
    }
    return joined(threads.done(data, new DriverWork() {
      Object of(Object value) throws Exception {
        List found = new ArrayList();
        addAll(found, (Stream) function.apply(value));
        return found;
      }
    }));
  }

  public void foreach(List data, final SerializableConsumer consumer, int parallelism) {
    if (!threads.take(data)) {
      super.foreach(data, consumer, parallelism);
      return;
    }
    threads.done(data, new DriverWork() {
      Object of(Object value) throws Exception {
        consumer.accept(value);
        return null;
      }
    });
  }

  public Map mapToPair(List data, SerializablePairFunction function, Integer parallelism) {
    if (!threads.take(data)) {
      return super.mapToPair(data, function, parallelism);
    }
    Map found = new HashMap();
    for (Iterator each = pairs(data, function).iterator(); each.hasNext();) {
      Pair pair = (Pair) each.next();
      found.put(pair.getKey(), pair.getValue());
    }
    return found;
  }

  private List pairs(List data, final SerializablePairFunction function) {
    return threads.done(data, new DriverWork() {
      Object of(Object value) throws Exception {
        return function.call(value);
      }
    });
  }

  public List mapToPairAndReduceByKey(List data, SerializablePairFunction function, SerializableBiFunction reduce,
                                      int parallelism) {
    return threads.take(data)
        ? new ArrayList(reduced(pairs(data, function), reduce).values())
        : super.mapToPairAndReduceByKey(data, function, reduce, parallelism);
  }

  public List reduceByKey(List data, SerializableBiFunction reduce, int parallelism) {
    return threads.take(data)
        ? new ArrayList(reduced(data, reduce).values()) : super.reduceByKey(data, reduce, parallelism);
  }

  public Stream mapPartitionsToPairAndReduceByKey(Stream data, final SerializablePairFlatMapFunction function,
                                                  SerializableBiFunction reduce, int parallelism) {
    List all = new ArrayList();
    addAll(all, data);
    if (!threads.take(all)) {
      return super.mapPartitionsToPairAndReduceByKey(all.stream(), function, reduce, parallelism);
    }
    List parts = threads.doneInParts(all, new DriverWork() {
      Object of(Object part) throws Exception {
        List found = new ArrayList();
        addAll(found, function.call(((List) part).iterator()));
        return found;
      }
    });
    List found = new ArrayList();
    for (Iterator each = reduced(joined(parts), reduce).entrySet().iterator(); each.hasNext();) {
      Map.Entry entry = (Map.Entry) each.next();
      found.add(new ImmutablePair(entry.getKey(), entry.getValue()));
    }
    return found.stream();
  }

  private static List joined(List parts) {
    List all = new ArrayList();
    for (Iterator each = parts.iterator(); each.hasNext();) {
      all.addAll((List) each.next());
    }
    return all;
  }

  private static void addAll(List found, Stream stream) {
    for (Iterator each = stream.iterator(); each.hasNext();) {
      found.add(each.next());
    }
  }

  private static Map reduced(List pairs, SerializableBiFunction reduce) {
    Map found = new LinkedHashMap();
    for (Iterator each = pairs.iterator(); each.hasNext();) {
      Pair pair = (Pair) each.next();
      Object key = pair.getKey();
      found.put(key, found.containsKey(key) ? reduce.apply(found.get(key), pair.getValue()) : pair.getValue());
    }
    return found;
  }
}
"""


def driver_engine(jvm: JavaView, spark_context: Any) -> Any:
    """Returns a `HoodieSparkEngineContext` (a `DriverEngine`)."""
    parts = driver_data, lazy_data, driver_threads
    imports, sources = "".join(each.IMPORTS for each in parts), "".join(each.SOURCE for each in parts)
    source = f"package groundskeeper;\n{imports}{_IMPORTS}{_SOURCE}{sources}"
    limits = _MOST_PIECES, _MOST_SHARED
    beside = held_locks(jvm.java)
    return janino.instance(jvm, source, "groundskeeper.DriverEngine", spark_context, *limits, beside=beside)
