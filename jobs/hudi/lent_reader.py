"""Makes Hudi's planner of compactions (1.2.0) use a reader of the metadata table that is open already.

The planner opens and reads the metadata table twice, once for the partitions and once for their files. On a small table
this takes as much CPU time as all the rest of the planning.
"""

from __future__ import annotations

from typing import Any

from jobs.hudi import janino
from jobs.hudi.jvm import Jvm
from jobs.hudi.table import HudiTable

# The planner finds the files of more partitions by a Spark job, whose executors do not have these classes.
_MOST_PARTITIONS = 16

_SOURCE = """
package groundskeeper;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.hudi.common.NativeTableFormat;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.timeline.versioning.TimelineLayoutVersion;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.metadata.HoodieTableMetadata;
import org.apache.hudi.metadata.TableMetadataFactory;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.table.HoodieSparkTable;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.util.CommonClientUtils;

public class LentReader {
  private final int most;

  public LentReader(int most) {
    this.most = most;
  }

  // Schedules a compaction as Hudi's client does while it holds the lock (`BaseHoodieTableServiceClient`,
  // `scheduleTableServiceInternal`). Returns false if nothing is due, and null if the reader cannot be lent.
  public Boolean plan(HoodieEngineContext context, HoodieWriteConfig config, HoodieTableMetadata reader, String instant)
      throws Exception {
    if (!config.getMetadataConfig().isEnabled() || reader.getAllPartitionPaths().size() > most) {
      return null;
    }
    HoodieTable table = HoodieSparkTable.create(config, context);
    HoodieTableMetaClient meta = table.getMetaClient();
    CommonClientUtils.validateTableVersion(meta.getTableConfig(), config);
    if (meta.getTableFormat().getClass() != NativeTableFormat.class) {
      return null;
    }
    Field format = HoodieTableMetaClient.class.getDeclaredField("tableFormat");
    format.setAccessible(true);
    format.set(meta, new LentFormat(meta.getTimelineLayoutVersion(), reader));
    return Boolean.valueOf(table.scheduleCompaction(context, instant, Option.empty()).isPresent());
  }
}

class LentFormat extends NativeTableFormat {
  private final TableMetadataFactory factory;

  LentFormat(TimelineLayoutVersion version, HoodieTableMetadata reader) {
    super(version);
    factory = new LentFactory(reader);
  }

  public TableMetadataFactory getMetadataFactory() {
    return factory;
  }
}

class LentFactory extends TableMetadataFactory {
  private final HoodieTableMetadata lent;

  LentFactory(HoodieTableMetadata reader) {
    lent = (HoodieTableMetadata) Proxy.newProxyInstance(
        HoodieTableMetadata.class.getClassLoader(), new Class[] {HoodieTableMetadata.class}, new Borrower(reader));
  }

  public HoodieTableMetadata create(HoodieEngineContext context, HoodieStorage storage, HoodieMetadataConfig config,
                                    String basePath, boolean reuse) {
    return lent;
  }
}

// The borrower of the reader must not close it.
class Borrower implements InvocationHandler {
  private final HoodieTableMetadata reader;

  Borrower(HoodieTableMetadata reader) {
    this.reader = reader;
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("close")) {
      return null;
    }
    try {
      return method.invoke(reader, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
"""


def scheduled_compaction(table: HudiTable, config: Any, client: Any) -> str | None:
    """Plans a compaction by a `SparkRDDWriteClient` and puts it on the timeline; None if nothing is due. The lock must
    be held. What a reader of the table has read stays true unless an instant has completed since."""
    if table.is_listed_by_metadata:
        with table.reading() as reader:
            instant = str(client.createNewInstantTime(False))
            planned = planned_compaction(table.jvm, config, reader, instant)
            if planned is not None:
                return instant if planned else None
    scheduled = client.scheduleCompaction(table.jvm.nothing())
    return str(scheduled.get()) if scheduled.isPresent() else None


def planned_compaction(jvm: Jvm, config: Any, reader: Any, instant: str) -> bool | None:
    """Plans a compaction as this instant, and puts it on the timeline unless nothing is due; returns whether it did.
    Returns None, without doing anything, if the reader cannot be lent."""
    beside = jvm.java.org.apache.hudi.storage.HoodieStorage
    lender = janino.instance(jvm, _SOURCE, "groundskeeper.LentReader", _MOST_PARTITIONS, beside=beside)
    done = lender.plan(jvm.engine_context, config, reader, instant)
    return None if done is None else bool(done)
