"""Makes Hudi's storage (1.2.0) look at the table's lock before a thread that works under it changes anything.

A worker may be suspended in the midst of a call of Hudi's client, for so long that others take its lock. When such a
call goes on, it may delete what they have made: a build of an index reads all rows, then deletes the folder of the
index and fills it anew (`clearExistingMetadataPartition` of `HoodieBackedTableMetadataWriter`). Only afterwards does
Hudi ask the table's clock for a time. So the lock is checked before each change by the thread that holds it, by a
thread that shares its work, and by a task of its Spark jobs in the driver's JVM: a task that fills an index may give
its file the name of a file of the next attempt. An object store creates a file only when the file is closed, so the
lock is checked before closing a file, too. Executors of a cluster do not check the lock. Their files have names of
their own (`jobs.hudi.task_numbers`), and Arrow's tasks look at the marker of each file (`jobs.storage.announced_file`).

The same storage does not move a file to its place if it was written only in part, because the disk is full. Hudi writes
a file of the timeline under another name and moves it even then (`HoodieStorage.createImmutableFileInPath`), and the
instant would count as completed. An empty file counts as a commit without files, so readers would see the rows of a
replacement twice. If the file has any other part of its content, no client can read the timeline of the table, or that
of the metadata table.

Before table version 8 the same storage writes the plan of a clean into the clean's inflight file, as Hudi before 1.0
does. The archiver of such an older Hudi reads the plan from there (`MetadataConversionUtils.createMetaWrapper`, 0.15).
Hudi 1.2 leaves the file empty, so each later batch of an older writer would fail ("Failed to archive commits", "Not an
Avro data file").

Hudi makes storages by the names of their classes, which it looks up in a cache of `ReflectionUtils`.
"""

from __future__ import annotations

CLASSES = {
    "org.apache.hudi.storage.hadoop.HoodieHadoopStorage": "HeldStorage",
    "org.apache.hudi.io.storage.HoodieSparkIOFactory": "HeldFactory",
    # Hudi's default, used if Spark's class is not configured. Both make the same readers and writers of Spark's rows.
    "org.apache.hudi.io.storage.hadoop.HoodieHadoopIOFactory": "HeldFactory",
}
"""Hudi's classes, and those that take their place in the driver's JVM."""

IMPORTS = """
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hudi.common.fs.ConsistencyGuard;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.hadoop.fs.HoodieWrapperFileSystem;
import org.apache.hudi.io.storage.HoodieSparkIOFactory;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.hadoop.HoodieHadoopStorage;
"""
SOURCE = """
public class HeldStorage extends HoodieHadoopStorage {
  // The names of temporary files, which Hudi writes first and then moves to their places.
  private static final String TEMPORARY = ".+\\\\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  private static final String INFLIGHT_CLEAN = "[0-9]+\\\\.clean\\\\.inflight";
  // The folder of the timeline before table version 8.
  private static final String TIMELINE = ".hoodie";
  // The errors of temporary files that were written only in part, by their paths.
  private static final ConcurrentHashMap FAILED = new ConcurrentHashMap();

  public HeldStorage(StoragePath path, StorageConfiguration conf) {
    super(path, conf);
  }

  HeldStorage(StoragePath path, StorageConfiguration conf, boolean retries, long most, int times, long first,
              String retried, ConsistencyGuard guard) {
    super(path, conf, retries, most, times, first, retried, guard);
  }

  HeldStorage(FileSystem files) {
    super(files);
  }

  public HoodieStorage getRawStorage() {
    FileSystem files = (FileSystem) getFileSystem();
    return files instanceof HoodieWrapperFileSystem
        ? new HeldStorage(((HoodieWrapperFileSystem) files).getFileSystem()) : this;
  }

  public HoodieStorage newInstance(StoragePath path, StorageConfiguration conf) {
    return new HeldStorage(path, conf);
  }

  public OutputStream create(StoragePath path) throws IOException {
    HeldLock.require();
    return new HeldStream(this, path, (FSDataOutputStream) super.create(path));
  }

  public OutputStream create(StoragePath path, boolean overwrites) throws IOException {
    HeldLock.require();
    byte[] plan = planOf(path);
    OutputStream stream = new HeldStream(this, path, (FSDataOutputStream) super.create(path, overwrites));
    stream.write(plan, 0, plan.length);
    return stream;
  }

  public OutputStream create(StoragePath path, boolean overwrites, Integer buffer, Short copies, Long block)
      throws IOException {
    HeldLock.require();
    return new HeldStream(this, path, (FSDataOutputStream) super.create(path, overwrites, buffer, copies, block));
  }

  public OutputStream append(StoragePath path) throws IOException {
    HeldLock.require();
    return new HeldStream(this, path, (FSDataOutputStream) super.append(path));
  }

  public boolean createNewFile(StoragePath path) throws IOException {
    HeldLock.require();
    if (planOf(path).length > 0) {
      create(path, false).close();
      return true;
    }
    return super.createNewFile(path);
  }

  public void setModificationTime(StoragePath path, long time) throws IOException {
    HeldLock.require();
    super.setModificationTime(path, time);
  }

  public boolean rename(StoragePath from, StoragePath to) throws IOException {
    HeldLock.require();
    Throwable failure = (Throwable) FAILED.remove(from.toString());
    if (failure != null) {
      throw new IOException("Only a part of " + from.getName() + " was written: " + failure.getMessage(), failure);
    }
    return super.rename(from, to);
  }

  public boolean deleteDirectory(StoragePath path) throws IOException {
    HeldLock.require();
    return super.deleteDirectory(path);
  }

  public boolean deleteFile(StoragePath path) throws IOException {
    HeldLock.require();
    FAILED.remove(path.toString());
    return super.deleteFile(path);
  }

  // The plan of a clean whose inflight file this is before table version 8; else nothing.
  private byte[] planOf(StoragePath path) throws IOException {
    if (!path.getName().matches(INFLIGHT_CLEAN) || !TIMELINE.equals(path.getParent().getName())) {
      return new byte[0];
    }
    InputStream plan = open(new StoragePath(path.getParent(), path.getName().replace(".inflight", ".requested")));
    try {
      return plan.readAllBytes();
    } finally {
      plan.close();
    }
  }

  void noteFailure(StoragePath path, Throwable failure, boolean isClosed) throws IOException {
    if (path.getName().matches(TEMPORARY)) {
      FAILED.put(path.toString(), failure);
      // // If closing a file fails, Hudi leaves the file behind.
      if (isClosed) {
        super.deleteFile(path);
      }
    }
  }
}

class HeldStream extends FSDataOutputStream {
  private final HeldStorage storage;
  private final StoragePath path;
  private boolean hasFailed;

  HeldStream(HeldStorage storage, StoragePath path, FSDataOutputStream stream) throws IOException {
    super(stream, null, stream.getPos());
    this.storage = storage;
    this.path = path;
  }

  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  public void write(byte[] bytes, int first, int count) throws IOException {
    try {
      super.write(bytes, first, count);
    } catch (IOException e) {
      noteFailure(e, false);
      throw e;
    } catch (Error e) {
      noteFailure(e, false);
      throw e;
    }
  }

  public void close() throws IOException {
    try {
      HeldLock.require();
    } catch (HoodieException e) {
      // A stream that cannot be aborted stays open, so that no file of the next attempt is replaced.
      if (hasCapability(CommonPathCapabilities.ABORTABLE_STREAM)) {
        abort();
      }
      throw e;
    }
    if (hasFailed && hasCapability(CommonPathCapabilities.ABORTABLE_STREAM)) {
      abort();
      return;
    }
    try {
      super.close();
    } catch (IOException e) {
      noteFailure(e, true);
      throw e;
    } catch (Error e) {
      noteFailure(e, true);
      throw e;
    }
  }

  // Hadoop's local files throw an `FSError` where the disk is full.
  void noteFailure(Throwable failure, boolean isClosed) throws IOException {
    hasFailed = true;
    storage.noteFailure(path, failure, isClosed);
  }
}

public class HeldFactory extends HoodieSparkIOFactory {
  public HeldFactory(HoodieStorage storage) {
    super(storage);
  }

  public HoodieStorage getStorage(StoragePath path, boolean retries, long most, int times, long first,
                                  String retried, ConsistencyGuard guard) {
    return new HeldStorage(path, storage.getConf(), retries, most, times, first, retried, guard);
  }
}
"""
