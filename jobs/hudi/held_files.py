"""Makes Hudi (1.2.0) ask, before it makes or completes a Parquet file, whether its work is still this worker's.

Hudi's storage (`jobs.hudi.held_storage`) does not see these files: `HoodieBaseParquetWriter` writes them through
Hadoop's file system for the scheme `hoodie-<scheme>`, for which it names `HoodieWrapperFileSystem`. Hadoop keeps one
file system for each scheme and authority, and asks for no class again while it has one. So the first one is ours.

A worker that is suspended between the marker of a base file and the file goes on after another attempt has removed the
marker, has executed the same plan and has completed it; nobody looks for a file of the instant any more. On a disk a
file exists from the moment in which it is made, and in an object store from that in which it is closed.
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

  // Takes the place of Hudi's own for the files below this path.
  public void keep(String path, StorageConfiguration storage) throws IOException {
    StoragePath folder = new StoragePath(path);
    Configuration given = (Configuration) storage.unwrapAs(Configuration.class);
    Configuration conf = HadoopFSUtils.registerFileSystem(folder, given);
    Path wrapped = HoodieWrapperFileSystem.convertToHoodiePath(folder, conf);
    conf.setClassLoader(getClass().getClassLoader());
    conf.set("fs." + wrapped.toUri().getScheme() + ".impl", getClass().getName());
    FileSystem files = wrapped.getFileSystem(conf);
    if (files.getClass() == HoodieWrapperFileSystem.class) {
      // Hadoop forgets it, and whoever has it can go on with it.
      files.close();
      wrapped.getFileSystem(conf);
    }
  }

  // `HadoopOutputFile` of Parquet makes files in this way.
  public FSDataOutputStream create(Path path, boolean overwrites, int buffer, short copies, long block)
      throws IOException {
    HeldLock.require();
    HeldFile file = new HeldFile(this, path, super.create(path, overwrites, buffer, copies, block));
    // The worker may have been suspended since it asked, and nobody closes the file of a task that is cancelled.
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
      // If it cannot be aborted, it stays open, so that no object is made.
      if (hasCapability(CommonPathCapabilities.ABORTABLE_STREAM)) {
        abort();
      }
      // No other worker has a base file of this name (`jobs.hudi.task_numbers`). A file of the history may have it.
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
