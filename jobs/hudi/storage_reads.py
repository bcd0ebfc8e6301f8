"""Reads of a `HoodieStorage`, a timeline and a view of files, in one call of the JVM each (Hudi 1.2.0).

A call from Python costs a tenth of a millisecond on either side, and an exception, such as of a file that is not there,
as much as twenty calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.hudi import janino

if TYPE_CHECKING:
    from jobs.hudi.java_view import JavaView

_SOURCE = """
package groundskeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.table.timeline.dto.FileSliceDTO;
import org.apache.hudi.common.table.view.AbstractTableFileSystemView;
import org.apache.hudi.common.util.JsonUtils;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

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

  public void write(HoodieStorage storage, String path, String text) throws IOException {
    OutputStream stream = storage.create(new StoragePath(path), true);
    try {
      stream.write(text.getBytes(StandardCharsets.UTF_8));
    } finally {
      stream.close();
    }
  }

  // In milliseconds since 1970; -1 without that file.
  public long modified(HoodieStorage storage, String path) throws IOException {
    try {
      return storage.getPathInfo(new StoragePath(path)).getModificationTime();
    } catch (FileNotFoundException e) {
      return -1;
    }
  }

  // The text of a list of `StoragePathInfo`; empty without that folder.
  public String listed(HoodieStorage storage, String folder, boolean recursive) throws IOException {
    StoragePath path = new StoragePath(folder);
    if (!storage.exists(path)) {
      return "";
    }
    return String.valueOf(recursive ? storage.listFiles(path) : storage.listDirectEntries(path));
  }

  // The latest file slices of some partitions, as JSON of `FileSliceDTO`. With a metadata table one look-up lists all.
  public String slices(AbstractTableFileSystemView view, List partitions) throws IOException {
    view.loadPartitions(partitions);
    List found = new ArrayList();
    for (Iterator each = partitions.iterator(); each.hasNext();) {
      for (Iterator slice = view.getLatestFileSlices((String) each.next()).iterator(); slice.hasNext();) {
        found.add(FileSliceDTO.fromFileSlice((FileSlice) slice.next()));
      }
    }
    return JsonUtils.toString(found);
  }

  // The commits of a timeline that wrote or replaced files, each with requested and completion time, as JSON; known
  // ones are not read again.
  public String commits(HoodieTimeline timeline, String replace, List known) throws IOException {
    StringBuilder found = new StringBuilder("[");
    for (Iterator each = timeline.getInstantsAsStream().iterator(); each.hasNext();) {
      HoodieInstant item = (HoodieInstant) each.next();
      String action = item.getAction();
      boolean replaces = action.equals(replace);
      if (!replaces && !action.equals("commit") && !action.equals("deltacommit")) {
        continue;
      }
      Object metadata = null;
      if (!known.contains(item.requestedTime())) {
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


def storage_reads(jvm: JavaView) -> Any:
    """Returns the Java object of these calls."""
    beside = jvm.java.org.apache.hudi.storage.HoodieStorage
    return janino.instance(jvm, _SOURCE, "groundskeeper.StorageReads", beside=beside)
