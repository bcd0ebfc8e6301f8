"""Subclasses of Spark's `JavaRDD` and `JavaPairRDD` that create the real RDD only when something asks for its values.

A compaction begins with the RDD that will write its files, and with a broadcast for its readers (`HoodieCompactor`,
Hudi 1.2.0). Arrow then writes the files instead, so nobody asks for that RDD, but creating it would take as much CPU as
the commit. `LazyData` only records the steps from the operations of a plan to the statuses of the files.
"""

IMPORTS = """
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hudi.common.data.HoodieData;
import org.apache.hudi.common.data.HoodieData.HoodieDataCacheKey;
import org.apache.hudi.common.engine.HoodieReaderContext;
import org.apache.hudi.common.engine.ReaderContextFactory;
import org.apache.hudi.common.table.HoodieTableMetaClient;
"""

SOURCE = """
// How to create a `JavaRDDLike`: from the list `argument`, or by one call of a method of `source`.
class LazyStep {
  final JavaSparkContext spark;
  private final LazyStep source;
  private final Object argument;
  final int parts;
  // The data whose RDD this step creates, if Spark persists it.
  LazyData owner;
  private Object made;

  LazyStep(JavaSparkContext spark, LazyStep source, Object argument, int parts) {
    this.spark = spark;
    this.source = source;
    this.argument = argument;
    this.parts = parts;
  }

  LazyStep then(Object argument, int parts) {
    return new LazyStep(spark, this, argument, parts);
  }

  synchronized boolean isMade() {
    return made != null;
  }

  synchronized Object made() {
    if (made == null) {
      made = source == null ? spark.parallelize((List) argument, parts) : applied(source.made());
      if (owner != null) {
        owner.isMade(((JavaRDD) made).id());
      }
    }
    return made;
  }

  private Object applied(Object values) {
    if (values instanceof JavaPairRDD) {
      JavaPairRDD pairs = (JavaPairRDD) values;
      return argument instanceof Partitioner
          ? (Object) pairs.partitionBy((Partitioner) argument) : pairs.map((Function) argument);
    }
    JavaRDD data = (JavaRDD) values;
    if (argument instanceof StorageLevel) {
      return data.persist((StorageLevel) argument);
    }
    if (argument instanceof PairFunction) {
      return data.mapToPair((PairFunction) argument);
    }
    return argument instanceof Function
        ? data.map((Function) argument) : data.flatMap((FlatMapFunction) argument);
  }
}

class LazyData extends JavaRDD {
  private static final AtomicInteger IDS = new AtomicInteger(-1);

  private transient LazyStep step;
  // No RDD of Spark has this id.
  private final int id = IDS.decrementAndGet();
  private transient DriverEngine engine;
  private transient HoodieDataCacheKey key;

  LazyData(DriverEngine engine, LazyStep step) {
    super(null, ClassTag$.MODULE$.Object());
    this.engine = engine;
    this.step = step;
  }

  public RDD rdd() {
    return ((JavaRDD) step.made()).rdd();
  }

  // Hudi frees the values that Spark keeps by the ids that are noted for the table and the instant.
  void isKeptFor(HoodieDataCacheKey key) {
    this.key = key;
    if (step.isMade()) {
      isMade(((JavaRDD) step.made()).id());
    }
  }

  void isMade(int id) {
    if (key != null) {
      engine.putCachedDataIds(key, new int[] {id});
    }
  }

  public int id() {
    engine.asked(id, this);
    return id;
  }

  public int getNumPartitions() {
    return step.parts;
  }

  public JavaRDD persist(StorageLevel level) {
    step = step.then(level, step.parts);
    step.owner = this;
    return this;
  }

  public JavaRDD map(Function function) {
    return new LazyData(engine, step.then(function, step.parts));
  }

  public JavaRDD flatMap(FlatMapFunction function) {
    return new LazyData(engine, step.then(function, step.parts));
  }

  public JavaPairRDD mapToPair(PairFunction function) {
    return new LazyPairs(engine, step.then(function, step.parts));
  }

  public JavaRDD union(JavaRDD other) {
    return other instanceof DriverData && other.getNumPartitions() == 0 ? this : super.union(other);
  }
}

class LazyPairs extends JavaPairRDD {
  private final transient DriverEngine engine;
  private final transient LazyStep step;

  LazyPairs(DriverEngine engine, LazyStep step) {
    super(step.spark.emptyRDD().rdd(), ClassTag$.MODULE$.Object(), ClassTag$.MODULE$.Object());
    this.engine = engine;
    this.step = step;
  }

  public RDD rdd() {
    return ((JavaPairRDD) step.made()).rdd();
  }

  public JavaPairRDD partitionBy(Partitioner partitioner) {
    return new LazyPairs(engine, step.then(partitioner, partitioner.numPartitions()));
  }

  public JavaRDD map(Function function) {
    return new LazyData(engine, step.then(function, step.parts));
  }
}

// Executors get the object of Hudi. Janino makes private methods static and renames them, so that `made` would lock the
// class, and nobody would find `writeReplace`.
class LazyReaders implements ReaderContextFactory {
  private final transient DriverEngine engine;
  private final transient HoodieTableMetaClient meta;
  private transient ReaderContextFactory made;

  LazyReaders(DriverEngine engine, HoodieTableMetaClient meta) {
    this.engine = engine;
    this.meta = meta;
  }

  public HoodieReaderContext getContext() {
    return made().getContext();
  }

  synchronized ReaderContextFactory made() {
    if (made == null) {
      made = engine.hudisReaders(meta);
    }
    return made;
  }

  public Object writeReplace() {
    return made();
  }
}
"""
