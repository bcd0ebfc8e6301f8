"""Finds the rows of a log that are deletes, with one call of the JVM for each block (Hudi 1.2.0). A writer that keeps
the change of each row (`hoodie.allow.operation.metadata.field`, Flink's `changelog.enabled`) writes no delete blocks:
its deletes are rows with the operation D or -U."""

from __future__ import annotations

from typing import Any

from jobs.hudi import janino
from jobs.hudi.java_view import JavaView

_SOURCE = """
package groundskeeper;

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.log.block.HoodieDataBlock;
import org.apache.hudi.common.table.read.DeleteContext;
import org.apache.hudi.common.util.collection.ClosableIterator;

public class DeletingRows {
  public DeletingRows() {}

  // A `DeleteRecord` for each row of the block that deletes, with the values of the ordering fields.
  public List of(HoodieDataBlock block, String partition, String fields) {
    List found = new ArrayList();
    String[] ordering = fields.isEmpty() ? new String[0] : fields.split(",");
    HoodieSchema schema = block.getSchema();
    Properties none = new Properties();
    // A context of `DeleteContext.fromRecordSchema` would ignore the operations of rows.
    DeleteContext deletes = new DeleteContext(none, schema).withReaderSchema(schema);
    ClosableIterator rows = block.getRecordIterator(HoodieRecord.HoodieRecordType.AVRO);
    try {
      while (rows.hasNext()) {
        HoodieRecord row = (HoodieRecord) rows.next();
        if (row.isDelete(deletes, none)) {
          String key = row.getRecordKey(schema, HoodieRecord.RECORD_KEY_METADATA_FIELD);
          found.add(DeleteRecord.create(key, partition, row.getOrderingValueAsJava(schema, none, ordering)));
        }
      }
    } finally {
      rows.close();
    }
    return found;
  }
}
"""


def deleting_rows(jvm: JavaView) -> Any:
    """Returns the Java object of this call."""
    beside = jvm.java.org.apache.hudi.storage.HoodieStorage
    return janino.instance(jvm, _SOURCE, "groundskeeper.DeletingRows", beside=beside)
