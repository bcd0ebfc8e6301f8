"""Makes Hudi (1.2.0) check, before it creates or completes a Parquet file, that the worker has not lost the table's
lock or the instant.

Hudi's storage (`jobs.hudi.held_storage`) does not see these files: `HoodieBaseParquetWriter` writes them through
Hadoop's file system for the scheme `hoodie-<scheme>`, and names `HoodieWrapperFileSystem` as its class. Hadoop keeps
one file system for each scheme and authority, and ignores the class while it has one. So this module registers its own
file system first.

A worker may be suspended after it has created the marker of a base file, and before it creates the file. Meanwhile
another attempt may remove the marker, execute the same plan and complete it. Afterwards nobody looks for files of the
instant any more, so the suspended worker must not create one. A file on a disk exists as soon as it is created, and an
object as soon as it is closed.
"""

from __future__ import annotations

from typing import Any

from jobs.hudi.jvm import Jvm, translated

IMPORTS = """
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
"""
SOURCE = """
public class HeldFiles extends HoodieWrapperFileSystem {
  public HeldFiles() {}

  // Replaces Hudi's own file system for the files below this path.
  public void keep(String path, StorageConfiguration storage) throws IOException {
    StoragePath folder = new StoragePath(path);
    Configuration given = (Configuration) storage.unwrapAs(Configuration.class);
    Configuration conf = HadoopFSUtils.registerFileSystem(folder, given);
    Path wrapped = HoodieWrapperFileSystem.convertToHoodiePath(folder, conf);
    conf.setClassLoader(getClass().getClassLoader());
    conf.set("fs." + wrapped.toUri().getScheme() + ".impl", getClass().getName());
    FileSystem files = wrapped.getFileSystem(conf);
    if (files.getClass() == HoodieWrapperFileSystem.class) {
      // This only removes Hudi's file system from Hadoop's cache. Whoever has it can go on using it.
      files.close();
      wrapped.getFileSystem(conf);
    }
  }

  // `HadoopOutputFile` of Parquet makes files in this way.
  public FSDataOutputStream create(Path path, boolean overwrites, int buffer, short copies, long block)
      throws IOException {
    HeldLock.require();
    HeldFile file = new HeldFile(this, path, super.create(path, overwrites, buffer, copies, block));
    // The worker may have been suspended since the first check, and nobody closes the file of a cancelled task.
    file.require();
    return file;
  }
}

class HeldFile extends FSDataOutputStream {
  private final FileSystem files;
  private final Path path;

  HeldFile(FileSystem files, Path path, FSDataOutputStream stream) throws IOException {
    super(stream, null, stream.getPos());
    this.files = files;
    this.path = path;
  }

  void require() throws IOException {
    try {
      HeldLock.require();
    } catch (HoodieException e) {
      // A stream that cannot be aborted stays open, so that no object is created.
      if (hasCapability(CommonPathCapabilities.ABORTABLE_STREAM)) {
        abort();
      }
      // No other worker has a base file of this name (`jobs.hudi.task_numbers`), but it may have a file of the history
      // with this name.
      if (path.toUri().getPath().indexOf("/.hoodie/") < 0) {
        files.delete(path, false);
      }
      throw e;
    }
  }

  public void close() throws IOException {
    require();
    super.close();
    require();
  }
}
"""


def hold(jvm: Jvm, files: Any, base_path: str) -> None:
    """Makes Hudi use `files` (a `HeldFiles`) for the Parquet files of a table. Call it whenever a table is opened,
    because file systems are closed from time to time (`jobs.hudi.s3a_recycling`)."""
    with translated("opening the file system of Hudi's Parquet files"):
        files.keep(base_path, jvm.storage_conf())
