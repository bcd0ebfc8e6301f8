"""Subclasses of Spark's `JavaRDD` and `JavaPairRDD` for a few values in the driver, which it processes itself. Hudi
1.2.0 writes mostly one record of a few hundred bytes to its metadata table, but takes two Spark jobs for that, with a
shuffle and a broadcast each. `DriverData` runs the steps of that write (`BaseSparkCommitActionExecutor.execute`) in the
calling thread; it also holds the statuses of files that are written already. All other methods are Spark's, on an RDD
of the same values."""

IMPORTS = """
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.Partitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.api.java.function.Function2;
import org.apache.spark.api.java.function.PairFunction;
import org.apache.spark.executor.TaskMetrics$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.StorageLevel;
import scala.Option$;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.reflect.ClassTag$;
"""

SOURCE = """
class DriverParts {
  final JavaSparkContext spark;
  // One list for each partition of the RDD.
  final List parts;
  private RDD same;

  DriverParts(JavaSparkContext spark, List parts) {
    this.spark = spark;
    this.parts = parts;
  }

  List values() {
    List found = new ArrayList();
    for (Iterator each = parts.iterator(); each.hasNext();) {
      found.addAll((List) each.next());
    }
    return found;
  }

  synchronized RDD rdd() {
    if (same == null) {
      JavaRDD all = spark.emptyRDD();
      for (Iterator each = parts.iterator(); each.hasNext();) {
        JavaRDD part = spark.parallelize((List) each.next(), 1);
        all = parts.size() == 1 ? part : all.union(part);
      }
      same = all.rdd();
    }
    return same;
  }

  // Applies a function of either kind to each value.
  List mapped(Function function, PairFunction ofPairs) {
    List found = new ArrayList();
    try {
      for (Iterator part = parts.iterator(); part.hasNext();) {
        List values = new ArrayList();
        for (Iterator each = ((List) part.next()).iterator(); each.hasNext();) {
          Object value = each.next();
          values.add(ofPairs == null ? function.call(value) : ofPairs.call(value));
        }
        found.add(values);
      }
    } catch (Exception e) {
      throw failed(e);
    }
    return found;
  }

  static RuntimeException failed(Exception e) {
    return e instanceof RuntimeException ? (RuntimeException) e : new HoodieException(e.getMessage(), e);
  }
}

class DriverData extends JavaRDD {
  private static final int FIRST_ATTEMPT = 1 << 30;

  private final transient DriverParts own;
  // Whether these are the statuses of written files. If Spark were asked for them again, it would write other files.
  private final boolean isWritten;

  DriverData(DriverParts own, boolean isWritten) {
    super(null, ClassTag$.MODULE$.Object());
    this.own = own;
    this.isWritten = isWritten;
  }

  static DriverData of(JavaSparkContext spark, List values) {
    return new DriverData(new DriverParts(spark, Collections.singletonList(values)), false);
  }

  static DriverData none(JavaSparkContext spark) {
    return new DriverData(new DriverParts(spark, Collections.emptyList()), false);
  }

  public RDD rdd() {
    return own.rdd();
  }

  public SparkContext context() {
    return own.spark.sc();
  }

  // Spark would examine the byte code of the function's class, which takes milliseconds.
  public JavaRDD map(Function function) {
    return new DriverData(new DriverParts(own.spark, own.mapped(function, null)), isWritten);
  }

  public JavaRDD flatMap(FlatMapFunction function) {
    if (!isWritten) {
      return super.flatMap(function);
    }
    List found = new ArrayList();
    try {
      for (Iterator each = own.values().iterator(); each.hasNext();) {
        for (Iterator value = function.call(each.next()); value.hasNext();) {
          found.add(value.next());
        }
      }
    } catch (Exception e) {
      throw DriverParts.failed(e);
    }
    return new DriverData(new DriverParts(own.spark, Collections.singletonList(found)), true);
  }

  public JavaPairRDD mapToPair(PairFunction function) {
    return new DriverPairs(new DriverParts(own.spark, own.mapped(null, function)));
  }

  public JavaRDD union(JavaRDD other) {
    if (own.parts.isEmpty()) {
      return other;
    }
    if (!(other instanceof DriverData)) {
      return super.union(other);
    }
    DriverData more = (DriverData) other;
    List parts = new ArrayList(own.parts);
    parts.addAll(more.own.parts);
    return new DriverData(new DriverParts(own.spark, parts), isWritten && more.isWritten);
  }

  // Hudi names files by the attempt at a task, which must be unique. Spark's own numbers are smaller (`task_numbers`).
  public JavaRDD mapPartitionsWithIndex(Function2 function, boolean preservesPartitioning) {
    BlockManager blocks = SparkEnv.get().blockManager();
    TaskContext before = TaskContext.get();
    List found = new ArrayList();
    for (int number = 0; number < own.parts.size(); number++) {
      int attempt = FIRST_ATTEMPT + ThreadLocalRandom.current().nextInt(FIRST_ATTEMPT);
      TaskContextImpl task = new TaskContextImpl(
          0, 0, number, attempt, 0, own.parts.size(), null, new Properties(), null, TaskMetrics$.MODULE$.empty(), 1,
          Map$.MODULE$.empty());
      // The block manager needs a registered task to read a broadcast.
      blocks.registerTask(attempt);
      TaskContext$.MODULE$.setTaskContext(task);
      try {
        List part = (List) own.parts.get(number);
        Iterator written = (Iterator) function.call(Integer.valueOf(number), part.iterator());
        while (written.hasNext()) {
          found.add(written.next());
        }
      } catch (Exception e) {
        throw DriverParts.failed(e);
      } finally {
        task.markTaskCompleted(Option$.MODULE$.empty());
        TaskContext$.MODULE$.setTaskContext(before);
        blocks.releaseAllLocksForTask(attempt);
      }
    }
    return new DriverData(new DriverParts(own.spark, Collections.singletonList(found)), true);
  }

  public JavaRDD persist(StorageLevel level) {
    return this;
  }

  public JavaRDD unpersist() {
    return this;
  }

  public StorageLevel getStorageLevel() {
    return StorageLevel.MEMORY_ONLY();
  }

  // No RDD that Spark has persisted has this id.
  public int id() {
    return -1;
  }

  public JavaRDD coalesce(int parts) {
    return this;
  }

  public int getNumPartitions() {
    return own.parts.size();
  }

  public List collect() {
    return own.values();
  }

  public long count() {
    return own.values().size();
  }

  public boolean isEmpty() {
    return own.values().isEmpty();
  }
}

class DriverPairs extends JavaPairRDD {
  private final transient DriverParts own;

  DriverPairs(DriverParts own) {
    super(own.spark.emptyRDD().rdd(), ClassTag$.MODULE$.Object(), ClassTag$.MODULE$.Object());
    this.own = own;
  }

  public RDD rdd() {
    return own.rdd();
  }

  public Map countByKey() {
    Map found = new LinkedHashMap();
    for (Iterator each = own.values().iterator(); each.hasNext();) {
      Object key = ((Tuple2) each.next())._1();
      Long count = (Long) found.get(key);
      found.put(key, Long.valueOf(count == null ? 1L : count.longValue() + 1L));
    }
    return found;
  }

  public JavaPairRDD partitionBy(Partitioner partitioner) {
    return new DriverPairs(new DriverParts(own.spark, parted(partitioner)));
  }

  public JavaPairRDD repartitionAndSortWithinPartitions(Partitioner partitioner, Comparator order) {
    List parts = parted(partitioner);
    for (Iterator each = parts.iterator(); each.hasNext();) {
      Collections.sort((List) each.next(), new ByKey(order));
    }
    return new DriverPairs(new DriverParts(own.spark, parts));
  }

  private List parted(Partitioner partitioner) {
    List parts = new ArrayList();
    for (int number = 0; number < partitioner.numPartitions(); number++) {
      parts.add(new ArrayList());
    }
    for (Iterator each = own.values().iterator(); each.hasNext();) {
      Tuple2 pair = (Tuple2) each.next();
      ((List) parts.get(partitioner.getPartition(pair._1()))).add(pair);
    }
    return parts;
  }

  public JavaRDD map(Function function) {
    return new DriverData(new DriverParts(own.spark, own.mapped(function, null)), false);
  }
}

class ByKey implements Comparator {
  private final Comparator order;

  ByKey(Comparator order) {
    this.order = order;
  }

  public int compare(Object one, Object other) {
    return order.compare(((Tuple2) one)._1(), ((Tuple2) other)._1());
  }
}
"""
