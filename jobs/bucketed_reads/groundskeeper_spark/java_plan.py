"""The planning of a read that needs objects of Spark and Hudi in the JVM: a Java class, compiled once for each JVM.

Each question of Python to the JVM costs both of them a message, and a plan or a listing of files has hundreds of
parts. So Java walks through them, and facts come back as JSON. The Python modules decide; no decision about buckets is
made here. Janino, which Spark brings along, compiles no lambdas and ignores type arguments.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from groundskeeper_spark import fused_plan, hashed_join, key_range, row_conditions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCE = """
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructField;
import scala.Option;
import scala.collection.Seq;

public class BucketedPlan {
  private static final String INDEX = "/.hoodie/.bucket_index";
  private static final String CONSISTENT = "consistent_hashing_metadata";
  private static final String META = "partition_bucket_index_meta";
  private static final String SUFFIX = ".hashing_config";

  private final SparkSession user;
  private final SparkSession own;
  private final ObjectMapper json = new ObjectMapper();
  // The clients of the tables, whose timelines are listed again for each snapshot.
  private final Map clients = new HashMap();
  // The plans of reads, by the ids of the data sets that stand for them in the plan of a query.
  private final Map scans = new HashMap();
  // For each read its largest file, as a sample of the order of rows in its files, and the first field of the key.
  private final List samples = new ArrayList();
  private String text = "";

  public BucketedPlan() {
    this(null, null);
  }

  private BucketedPlan(SparkSession user, SparkSession own) {
    this.user = user;
    this.own = own;
  }

  // A plan whose own session joins co-located buckets, with the user's other settings.
  public BucketedPlan begin(SparkSession user) {
    SparkSession own = user.cloneSession();
    own.conf().set("spark.sql.adaptive.enabled", "false");
    own.conf().set("spark.sql.requireAllClusterKeysForCoPartition", "false");
    return new BucketedPlan(user, own);
  }

  public Dataset checked(Dataset rows, String fields, int modulus, String wrong) throws Exception {
    return RowConditions.checked(rows, list(fields), modulus, wrong);
  }

  public Column hash(Dataset rows, String fields) throws Exception {
    return RowConditions.hash(rows, list(fields));
  }

  public Dataset wanted(Dataset rows, String fields, String keys) throws Exception {
    return RowConditions.wanted(rows, list(fields), list(keys));
  }

  public Dataset read(String table) {
    return own.read().format("hudi").load(table);
  }

  // The types of the columns by name.
  public String types(Dataset rows) throws Exception {
    Map found = new HashMap();
    StructField[] fields = rows.schema().fields();
    for (int at = 0; at < fields.length; at++) {
      found.put(fields[at].name(), fields[at].dataType().simpleString());
    }
    return json.writeValueAsString(found);
  }

  // What the storage says about instants and hashing configs, the oldest config first.
  public String snapshot(String table) throws Exception {
    Configuration conf = user.sparkContext().hadoopConfiguration();
    FileSystem files = new Path(table).getFileSystem(conf);
    Map found = new HashMap();
    List index = names(files, table + INDEX);
    found.put("is_consistent", Boolean.valueOf(index.contains(CONSISTENT)));
    HoodieTimeline done = timeline(table, conf).getCommitsTimeline().filterCompletedInstants();
    found.put("commits", Integer.valueOf(done.countInstants()));
    if (!done.empty()) {
      found.put("instant", ((HoodieInstant) done.lastInstant().get()).requestedTime());
    }
    List configs = new ArrayList();
    String folder = table + INDEX + "/" + META + "/configs";
    List named = index.contains(META) ? names(files, folder) : new ArrayList();
    Collections.sort(named);
    for (Iterator each = named.iterator(); each.hasNext();) {
      String name = (String) each.next();
      if (name.endsWith(SUFFIX)) {
        String instant = name.substring(0, name.length() - SUFFIX.length());
        configs.add(Arrays.asList(new Object[] {
            instant, Boolean.valueOf(done.containsOrBeforeTimelineStarts(instant))}));
      }
    }
    found.put("configs", configs);
    if (!configs.isEmpty()) {
      Object last = ((List) configs.get(configs.size() - 1)).get(0);
      InputStream stream = files.open(new Path(folder + "/" + last + SUFFIX));
      try {
        found.put("config", new String(stream.readAllBytes(), StandardCharsets.UTF_8));
      } finally {
        stream.close();
      }
    }
    return json.writeValueAsString(found);
  }

  private HoodieTimeline timeline(String table, Configuration conf) {
    HoodieTableMetaClient client = (HoodieTableMetaClient) clients.get(table);
    if (client != null) {
      return client.reloadActiveTimeline();
    }
    client = HoodieTableMetaClient.builder()
        .setConf(new HadoopStorageConfiguration(conf)).setBasePath(table).build();
    clients.put(table, client);
    return client.getActiveTimeline();
  }

  private static List names(FileSystem files, String folder) throws Exception {
    List found = new ArrayList();
    try {
      FileStatus[] listed = files.listStatus(new Path(folder));
      for (int at = 0; at < listed.length; at++) {
        found.add(listed[at].getPath().getName());
      }
    } catch (FileNotFoundException absent) {
      return found;
    }
    return found;
  }

  // Name and bytes of each file that Hudi has listed; a text that says what Hudi plans instead.
  public String files(Dataset rows) throws Exception {
    Seq leaves = rows.queryExecution().executedPlan().collectLeaves();
    if (leaves.size() != 1 || !(leaves.apply(0) instanceof FileSourceScanExec)) {
      return json.writeValueAsString("has planned no scan of file slices");
    }
    RDD read = ((FileSourceScanExec) leaves.apply(0)).inputRDD();
    if (!(read instanceof FileScanRDD)) {
      return json.writeValueAsString("reads by " + read.getClass().getSimpleName());
    }
    List found = new ArrayList();
    for (Iterator each = listed((FileScanRDD) read).iterator(); each.hasNext();) {
      PartitionedFile file = (PartitionedFile) each.next();
      String path = file.filePath().toString();
      found.add(Arrays.asList(new Object[] {
          path.substring(path.lastIndexOf('/') + 1), Long.valueOf(file.length())}));
    }
    return json.writeValueAsString(found);
  }

  private static List listed(FileScanRDD read) {
    List found = new ArrayList();
    Seq partitions = read.filePartitions();
    for (int at = 0; at < partitions.size(); at++) {
      found.addAll(Arrays.asList(((FilePartition) partitions.apply(at)).files()));
    }
    return found;
  }

  // The rows with a task for each bucket, which Spark takes for partitioned by the fields. `buckets` has the number of
  // each file in the order of `files`, and -1 for a file that is not read. Such rows are sealed before they leave.
  public Dataset declared(Dataset rows, String buckets, String fields, int modulus) throws Exception {
    QueryExecution query = rows.queryExecution();
    SparkPlan plan = query.executedPlan();
    FileScanRDD read = (FileScanRDD) ((FileSourceScanExec) plan.collectLeaves().apply(0)).inputRDD();
    List numbers = list(buckets);
    List files = listed(read);
    List[] grouped = new List[modulus];
    for (int bucket = 0; bucket < modulus; bucket++) {
      grouped[bucket] = new ArrayList();
    }
    PartitionedFile largest = null;
    for (int at = 0; at < files.size(); at++) {
      int bucket = ((Integer) numbers.get(at)).intValue();
      PartitionedFile file = (PartitionedFile) files.get(at);
      if (bucket >= 0) {
        grouped[bucket].add(file);
        largest = largest == null || file.length() > largest.length() ? file : largest;
      }
    }
    List partitions = new ArrayList();
    for (int bucket = 0; bucket < modulus; bucket++) {
      PartitionedFile[] array = (PartitionedFile[]) grouped[bucket].toArray(new PartitionedFile[0]);
      partitions.add(new FilePartition(bucket, array));
    }
    Field field = FileScanRDD.class.getDeclaredField("filePartitions");
    field.setAccessible(true);
    field.set(read, seq(partitions));
    scans.put(Integer.valueOf(read.id()), plan);
    Seq output = query.analyzed().output();
    List keys = new ArrayList();
    for (Iterator each = list(fields).iterator(); each.hasNext();) {
      keys.add(attribute(output, (String) each.next()));
    }
    if (largest != null) {
      samples.add(new Object[] {largest.filePath().toPath(), list(fields).get(0)});
    }
    return rows(own, output, read, new HashPartitioning(seq(keys), modulus));
  }

  private static Attribute attribute(Seq output, String name) {
    Attribute found = null;
    for (int at = 0; at < output.size(); at++) {
      Attribute each = (Attribute) output.apply(at);
      found = each.name().equals(name) ? each : found;
    }
    return found;
  }

  private static Dataset rows(SparkSession session, Seq output, RDD rdd, Partitioning partitioning) {
    Option none = Option.empty();
    LogicalPlan plan =
        new LogicalRDD(output, rdd, partitioning, seq(new ArrayList()), false, session, none, none);
    return Dataset.ofRows(session, plan);
  }

  public Dataset joined(Dataset left, Dataset right, String keys, String how, boolean isLeft, String hint)
      throws Exception {
    Seq names = seq(list(keys));
    Seq nothing = seq(new ArrayList());
    return isLeft
        ? left.hint(hint, nothing).join(right, names, how) : left.join(right.hint(hint, nothing), names, how);
  }

  // The names of the columns from which a group is computed; null if they are not certain.
  public String needed(Dataset grouped) throws Exception {
    LogicalPlan plan = grouped.queryExecution().analyzed();
    if (!(plan instanceof Aggregate)) {
      return "null";
    }
    List found = new ArrayList();
    Seq columns = plan.references().toSeq();
    for (int at = 0; at < columns.size(); at++) {
      found.add(((Attribute) columns.apply(at)).name());
    }
    return json.writeValueAsString(found);
  }

  // The rows of the user's session, without the declared partitioning; null if the plan moves rows between tasks.
  public Dataset sealed(Dataset rows) {
    QueryExecution query = rows.queryExecution();
    SparkPlan planned = query.executedPlan();
    if (planned.toString().contains("Exchange")) {
      return null;
    }
    int equalBits = planned.toString().contains("SortMergeJoin")
        ? KeyRange.of(samples, user.sparkContext().hadoopConfiguration()).equalBits() : 0;
    SparkPlan plan = FusedPlan.of(query, scans, own.sessionState().conf(), equalBits);
    text = plan.toString();
    RDD rdd = FusedPlan.executed(plan, own.sessionState().conf());
    return rows(user, query.analyzed().output(), rdd, new UnknownPartitioning(rdd.getNumPartitions()));
  }

  public String text() {
    return text;
  }

  private List list(String members) throws Exception {
    return (List) json.readValue(members, List.class);
  }

  private static Seq seq(List members) {
    return PythonUtils.toSeq(members);
  }
}
"""

_PARTS = (fused_plan, hashed_join, key_range, row_conditions)
_compiling = threading.Lock()
# An object of the class for each JVM. The objects of single reads are made from it.
_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def begin(spark: SparkSession) -> Any:
    """Returns a new Java object for the plan of one read; compiling its class takes up to a second."""
    gateway: Any = spark.sparkContext._gateway
    with _compiling:
        if gateway not in _made:
            _made[gateway] = _compiled(spark._jvm).newInstance()
    return _made[gateway].begin(spark._jsparkSession)


def _compiled(jvm: Any) -> Any:
    lines = [line for source in (_SOURCE, *(part.SOURCE for part in _PARTS)) for line in source.splitlines()]
    imports = sorted({line for line in lines if line.startswith("import ")})
    classes = [line for line in lines if not line.startswith("import ")]
    # Py4j keeps methods by the name of their class, so a class that is compiled again needs another name.
    package = f"groundskeeper.compiled_{uuid4().hex}"
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook("\n".join([f"package {package};", *imports, *classes]))
    return compiler.getClassLoader().loadClass(f"{package}.BucketedPlan")
