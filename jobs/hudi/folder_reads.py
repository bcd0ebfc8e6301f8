"""Lists many folders of a `HoodieStorage` with one call of the JVM, side by side (Hudi 1.2.0): a storage such as S3
takes as long for each request as the JVM for a thousand calls."""

from __future__ import annotations

from typing import Any

from jobs.hudi import janino
from jobs.hudi.java_view import JavaView

_SOURCE = """
package groundskeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.util.JsonUtils;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

public class FolderReads implements ThreadFactory {
  private static final long IDLE_SECONDS = 60;

  // The threads that all slots share.
  private final ThreadPoolExecutor pool;

  public FolderReads(int threads) {
    pool = new ThreadPoolExecutor(threads, threads, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue(), this);
    pool.allowCoreThreadTimeOut(true);
  }

  public Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "groundskeeper folders");
    thread.setDaemon(true);
    return thread;
  }

  // The text of a list of `StoragePathInfo`; empty if there is no such folder.
  public String listed(HoodieStorage storage, String folder, boolean recursive) throws IOException {
    StoragePath path = new StoragePath(folder);
    try {
      return String.valueOf(recursive ? storage.listFiles(path) : storage.listDirectEntries(path));
    } catch (FileNotFoundException e) {
      return "";
    }
  }

  // Returns the texts of several folders, as `listed` returns one, as JSON.
  public String listed(final HoodieStorage storage, List folders) throws Exception {
    List found = new ArrayList();
    if (folders.size() < 2) {
      for (Iterator each = folders.iterator(); each.hasNext();) {
        found.add(listed(storage, (String) each.next(), false));
      }
      return JsonUtils.toString(found);
    }
    List asked = new ArrayList();
    for (Iterator each = folders.iterator(); each.hasNext();) {
      final String folder = (String) each.next();
      asked.add(pool.submit(new Callable() {
        public Object call() throws Exception {
          return listed(storage, folder, false);
        }
      }));
    }
    for (Iterator each = asked.iterator(); each.hasNext();) {
      try {
        found.add(((Future) each.next()).get());
      } catch (ExecutionException e) {
        throw (Exception) e.getCause();
      }
    }
    return JsonUtils.toString(found);
  }
}
"""

_THREADS = 16


def folder_reads(jvm: JavaView) -> Any:
    """Returns the Java object of these calls."""
    beside = jvm.java.org.apache.hudi.storage.HoodieStorage
    return janino.instance(jvm, _SOURCE, "groundskeeper.FolderReads", _THREADS, beside=beside)
