"""Reads the hashing configs of a table with one call of the JVM each (Hudi 1.2.0)."""

from __future__ import annotations

from typing import Any

from jobs.hudi import janino
from jobs.hudi.java_view import JavaView

_SOURCE = """
package groundskeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hudi.common.model.PartitionBucketIndexHashingConfig;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.index.bucket.partition.PartitionBucketIndexUtils;
import org.apache.hudi.storage.StoragePath;

public class HashingReads {
  public HashingReads() {}

  public boolean exist(HoodieTableMetaClient meta) {
    return PartitionBucketIndexUtils.isPartitionSimpleBucketIndex(
        meta.getStorageConf(), meta.getBasePath().toString());
  }

  // The valid hashing config as JSON; null if there are none.
  public String latest(HoodieTableMetaClient meta) throws IOException {
    return exist(meta)
        ? PartitionBucketIndexHashingConfig.loadingLatestHashingConfig(meta).toJsonString() : null;
  }

  // The hashing configs before that of an instant, the latest first, as JSON; up to the first that is gone.
  public String before(HoodieTableMetaClient meta, String instant) throws IOException {
    List names = new ArrayList(PartitionBucketIndexHashingConfig.getCommittedHashingConfigInstants(meta));
    Collections.sort(names, Collections.reverseOrder());
    String basePath = meta.getBasePath().toString();
    StringBuilder found = new StringBuilder("[");
    for (Iterator each = names.iterator(); each.hasNext();) {
      String name = (String) each.next();
      if (name.compareTo(instant) >= 0) {
        continue;
      }
      StoragePath path = PartitionBucketIndexHashingConfig.getHashingConfigPath(basePath, name);
      Option loaded = PartitionBucketIndexHashingConfig.loadHashingConfig(meta.getStorage(), path);
      if (!loaded.isPresent()) {
        break;
      }
      found.append(found.length() > 1 ? "," : "");
      found.append(((PartitionBucketIndexHashingConfig) loaded.get()).toJsonString());
    }
    return found.append("]").toString();
  }
}
"""


def hashing_reads(jvm: JavaView) -> Any:
    """Returns the Java object of these calls."""
    beside = jvm.java.org.apache.hudi.storage.HoodieStorage
    return janino.instance(jvm, _SOURCE, "groundskeeper.HashingReads", beside=beside)
