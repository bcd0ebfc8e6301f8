"""Reads from a `HoodieStorage`, a timeline or a view of files with one call of the JVM each (Hudi 1.2.0). A call from
Python costs a tenth of a millisecond on each side, and an exception, such as for a missing file, as much as twenty
calls."""

from __future__ import annotations

from typing import Any

from jobs.hudi import janino
from jobs.hudi.java_view import JavaView

_SOURCE = """
package groundskeeper;

import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.ConfigProperty;
import org.apache.hudi.common.config.HoodieMemoryConfig;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodieIndexMetadata;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.timeline.dto.FileSliceDTO;
import org.apache.hudi.common.table.timeline.dto.TimelineDTO;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.common.util.CleanerUtils;
import org.apache.hudi.common.util.ClusteringUtils;
import org.apache.hudi.common.util.CompactionUtils;
import org.apache.hudi.common.util.JsonUtils;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.metadata.HoodieTableMetadata;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.HoodieStorageUtils;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.table.HoodieSparkTable;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.table.action.rollback.RollbackUtils;

public class StorageReads {
  public StorageReads() {}

  // The beginning of a file; null if there is none.
  public String text(HoodieStorage storage, String path, int most) throws IOException {
    InputStream stream;
    try {
      stream = storage.open(new StoragePath(path));
    } catch (FileNotFoundException e) {
      return null;
    }
    try {
      return new String(stream.readNBytes(most), StandardCharsets.UTF_8);
    } finally {
      stream.close();
    }
  }

  // On a local disk the content is forced onto the disk, because after a loss of power a file that was only closed may
  // be empty.
  public void write(HoodieStorage storage, String path, String text) throws IOException {
    StoragePath file = new StoragePath(path);
    OutputStream stream = storage.create(file, true);
    try {
      stream.write(text.getBytes(StandardCharsets.UTF_8));
    } finally {
      stream.close();
    }
    if (text.length() > 0 && "file".equals(storage.getScheme())) {
      FileOutputStream written = new FileOutputStream(file.toUri().getPath(), true);
      try {
        written.getFD().sync();
      } finally {
        written.close();
      }
    }
  }

  // Makes a file and removes it again. The content is needed because a full disk allows empty files.
  public void probe(StorageConfiguration conf, String path, int bytes) throws IOException {
    StoragePath file = new StoragePath(path);
    HoodieStorage storage = HoodieStorageUtils.getStorage(file, conf);
    try {
      OutputStream stream = storage.create(file, false);
      try {
        stream.write(new byte[bytes]);
      } finally {
        stream.close();
      }
    } finally {
      storage.deleteFile(file);
    }
  }

  // The time of a file that is made and removed again, in milliseconds since 1970.
  public long now(HoodieStorage storage, String path) throws IOException {
    StoragePath file = new StoragePath(path);
    storage.create(file, true).close();
    long now = storage.getPathInfo(file).getModificationTime();
    storage.deleteFile(file);
    return now;
  }

  // Returns milliseconds since 1970; -1 if there is no such file.
  public long modified(HoodieStorage storage, String path) throws IOException {
    try {
      return storage.getPathInfo(new StoragePath(path)).getModificationTime();
    } catch (FileNotFoundException e) {
      return -1;
    }
  }

  // Removes the defaults of YARN and MapReduce from Hadoop's options. These are two thirds of all options, and no file
  // system reads them. Hudi copies all options for each table, lock and block of a log. If Hadoop loads its defaults
  // again, these are back.
  public void slim(Configuration conf) throws Exception {
    Set dropped = new HashSet();
    for (Iterator each = conf.iterator(); each.hasNext();) {
      String name = (String) ((Map.Entry) each.next()).getKey();
      String[] sources = conf.getPropertySources(name);
      String last = sources == null || sources.length == 0 ? "" : sources[sources.length - 1];
      if ((last.equals("yarn-default.xml") && name.startsWith("yarn."))
          || (last.equals("mapred-default.xml") && name.startsWith("mapreduce."))) {
        dropped.add(name);
      }
    }
    for (Iterator each = dropped.iterator(); each.hasNext();) {
      conf.unset((String) each.next());
    }
    Field sources = Configuration.class.getDeclaredField("updatingResource");
    sources.setAccessible(true);
    ((Map) sources.get(conf)).keySet().removeAll(dropped);
  }

  // Hudi reads each log of a metadata table through two buffers of this size, which no option changes. To allocate and
  // clear buffers of the default size, 16 MB, costs more than all other steps of reading a small metadata table.
  public void bufferLogs(int bytes) throws Exception {
    Field usual = ConfigProperty.class.getDeclaredField("defaultValue");
    usual.setAccessible(true);
    usual.set(HoodieMemoryConfig.MAX_DFS_STREAM_BUFFER_SIZE, Integer.valueOf(bytes));
  }

  public HoodieTableMetaClient opened(String basePath, StorageConfiguration conf) {
    return HoodieTableMetaClient.builder().setBasePath(basePath).setConf(conf).build();
  }

  // Properties, and where the parts of the table are, as JSON.
  public String described(HoodieTableMetaClient meta) throws IOException {
    Map found = new HashMap();
    found.put("properties", meta.getTableConfig().getProps());
    found.put("metadata partitions", meta.getTableConfig().getMetadataPartitions());
    found.put("path", meta.getBasePath().toString());
    String timeline = meta.getTimelinePath().toString();
    found.put("timeline", timeline);
    found.put("folders",
        Arrays.asList(new Object[] {timeline, meta.getArchivePath().toString(), meta.getIndexDefinitionPath()}));
    return JsonUtils.toString(found);
  }

  // The active timeline as it is now, as JSON of `TimelineDTO`.
  public String timeline(HoodieTableMetaClient meta) throws IOException {
    return JsonUtils.toString(TimelineDTO.fromTimeline(meta.reloadActiveTimeline()));
  }

  // The archived timeline, as JSON of `TimelineDTO`.
  public String archived(HoodieTableMetaClient meta) throws IOException {
    return JsonUtils.toString(TimelineDTO.fromTimeline(meta.getArchivedTimeline()));
  }

  // The completed instants of the active timeline as it was loaded last, with their completion times.
  public String completed(HoodieTableMetaClient meta) {
    return String.valueOf(meta.getActiveTimeline().filterCompletedInstants().getInstants());
  }

  // The definitions of the indexes as JSON of `HoodieIndexMetadata`; null if there are none.
  public String indexes(HoodieTableMetaClient meta) throws IOException {
    Option found = meta.getIndexMetadata();
    return found.isPresent() ? ((HoodieIndexMetadata) found.get()).toJson() : null;
  }

  // The completed instants of the active timeline that a method of `HoodieTimeline` fails to read, as JSON; the methods
  // are named by action. Known ones, which are named as for `commits`, are not read again.
  public String unreadable(HoodieTableMetaClient meta, Map methods, String known) throws IOException {
    List names = Arrays.asList(known.split(","));
    HoodieTimeline timeline = meta.reloadActiveTimeline();
    List found = new ArrayList();
    Iterator each = timeline.filterCompletedInstants().getInstantsAsStream().iterator();
    while (each.hasNext()) {
      HoodieInstant item = (HoodieInstant) each.next();
      String method = (String) methods.get(item.getAction());
      try {
        if (method != null && !names.contains(item.requestedTime() + "/" + item.getCompletionTime())) {
          HoodieTimeline.class.getMethod(method, new Class[] {HoodieInstant.class})
              .invoke(timeline, new Object[] {item});
        }
      } catch (Throwable e) {
        found.add(item.requestedTime());
      }
    }
    return JsonUtils.toString(found);
  }

  // The operation that an unfinished instant names; null if it is no longer pending.
  public String operation(HoodieTableMetaClient meta, String requested) throws IOException {
    HoodieTimeline timeline = meta.reloadActiveTimeline();
    for (Iterator each = timeline.getInstantsAsStream().iterator(); each.hasNext();) {
      HoodieInstant item = (HoodieInstant) each.next();
      if (item.requestedTime().equals(requested) && !item.isCompleted()) {
        return String.valueOf(timeline.readCommitMetadata(item).getOperationType());
      }
    }
    return null;
  }

  // The plan of a table service as JSON of its Avro record; null if the instant is no longer pending.
  public String plan(HoodieTableMetaClient meta, String requested) throws IOException {
    HoodieTimeline pending = meta.reloadActiveTimeline().filterInflightsAndRequested();
    for (Iterator each = pending.getInstantsAsStream().iterator(); each.hasNext();) {
      HoodieInstant item = (HoodieInstant) each.next();
      if (item.requestedTime().equals(requested)) {
        return plan(meta, item);
      }
    }
    return null;
  }

  private static String plan(HoodieTableMetaClient meta, HoodieInstant item) throws IOException {
    String action = item.getAction();
    if (action.equals("clean")) {
      return CleanerUtils.getCleanerPlan(meta, item).toString();
    }
    if (action.equals("rollback")) {
      return RollbackUtils.getRollbackPlan(meta, item).toString();
    }
    if (action.equals("compaction")) {
      return CompactionUtils.getCompactionPlan(meta, item.requestedTime()).toString();
    }
    if (action.equals("logcompaction")) {
      return CompactionUtils.getLogCompactionPlan(meta, item.requestedTime()).toString();
    }
    Option found = ClusteringUtils.getClusteringPlan(meta, item);
    return found.isPresent() ? ((Pair) found.get()).getRight().toString() : "{}";
  }

  // A reader of partitions and files: of the metadata table as it is now, or one that lists the storage.
  public HoodieTableMetadata listing(HoodieTableMetaClient meta, HoodieEngineContext context, String basePath,
                                     boolean fromMetadata) {
    HoodieMetadataConfig config = HoodieMetadataConfig.newBuilder().enable(fromMetadata).build();
    return meta.getTableFormat().getMetadataFactory().create(context, meta.getStorage(), config, basePath, true);
  }

  // The latest file slices of some partitions by such a reader, as JSON of `FileSliceDTO`. One look-up in a metadata
  // table lists all of these partitions.
  public String slices(HoodieTableMetaClient meta, HoodieTableMetadata reader, List partitions) throws IOException {
    HoodieTimeline timeline = meta.getActiveTimeline().getCommitsTimeline().filterCompletedInstants();
    // The view need not be closed, because it is only in memory. To close it would close the reader, which then reads
    // the metadata table again.
    HoodieTableFileSystemView view = new HoodieTableFileSystemView(reader, meta, timeline);
    view.loadPartitions(partitions);
    List found = new ArrayList();
    for (Iterator each = partitions.iterator(); each.hasNext();) {
      for (Iterator slice = view.getLatestFileSlices((String) each.next()).iterator(); slice.hasNext();) {
        found.add(FileSliceDTO.fromFileSlice((FileSlice) slice.next()));
      }
    }
    return JsonUtils.toString(found);
  }

  // Returns Hudi's table with such a reader; without it the table would open a new reader at each look-up.
  public HoodieTable table(HoodieTableMetaClient meta, HoodieEngineContext context, HoodieWriteConfig config,
                           HoodieTableMetadata reader) throws Exception {
    HoodieTable table = HoodieSparkTable.create(config, context, meta);
    Field metadata = HoodieTable.class.getDeclaredField("metadata");
    metadata.setAccessible(true);
    metadata.set(table, reader);
    return table;
  }

  // The completed commits of the active timeline that wrote or replaced files, each with requested and completion time,
  // as JSON. The metadata of known ones, which are named by both times, is not read again.
  public String commits(HoodieTableMetaClient meta, String known) throws IOException {
    List names = Arrays.asList(known.split(","));
    return commits(meta.reloadActiveTimeline().getWriteTimeline().filterCompletedInstants(), names, "");
  }

  // The same of the archived timeline: the commits that were requested at `since` or later. If `replacing`, also all
  // that replaced files, for which the whole history is read.
  public String archivedCommits(HoodieTableMetaClient meta, String since, boolean replacing) throws IOException {
    return commits(meta.getArchivedTimeline(replacing ? "0" : since, false), new ArrayList(), since);
  }

  private static String commits(HoodieTimeline timeline, List known, String since) throws IOException {
    StringBuilder found = new StringBuilder("[");
    for (Iterator each = timeline.getInstantsAsStream().iterator(); each.hasNext();) {
      HoodieInstant item = (HoodieInstant) each.next();
      String action = item.getAction();
      boolean replaces = action.equals("replacecommit");
      if (!replaces && ((!action.equals("commit") && !action.equals("deltacommit"))
          || item.requestedTime().compareTo(since) < 0)) {
        continue;
      }
      Object metadata = null;
      if (!known.contains(item.requestedTime() + "/" + item.getCompletionTime())) {
        metadata = replaces ? timeline.readReplaceCommitMetadata(item) : timeline.readCommitMetadata(item);
      }
      found.append(found.length() > 1 ? "," : "").append("[");
      found.append(JsonUtils.toString(item.requestedTime())).append(",");
      found.append(JsonUtils.toString(item.getCompletionTime())).append(",");
      found.append(JsonUtils.toString(metadata)).append("]");
    }
    return found.append("]").toString();
  }
}
"""


# The blocks of most logs of a metadata table have some KB. Longer ones are read past the buffer.
_LOG_BUFFER = 256 << 10


def storage_reads(jvm: JavaView) -> Any:
    """Returns the Java object of these calls, and gives the logs of metadata tables small buffers."""
    beside = jvm.java.org.apache.hudi.storage.HoodieStorage
    found = janino.instance(jvm, _SOURCE, "groundskeeper.StorageReads", beside=beside)
    found.bufferLogs(_LOG_BUFFER)
    return found
