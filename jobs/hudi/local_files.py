"""Makes Hadoop's local file system set permissions without starting processes. PySpark has no native library of Hadoop,
so `RawLocalFileSystem` (3.3.4) starts `chmod` for each new file and folder: about fifty times in a small compaction of
a table on a local disk, mostly with the table's lock held."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from jobs.hudi import janino

if TYPE_CHECKING:
    from jobs.hudi.java_view import JavaView

_SOURCE = """
package groundskeeper;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.nativeio.NativeIO;

public class LocalFiles extends RawLocalFileSystem {
  public LocalFiles() {}

  public void setPermission(Path path, FsPermission permission) throws IOException {
    try {
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
    } catch (Exception e) {
      // Permissions of another kind, or an error, which Hadoop tells in its own words.
      super.setPermission(path, permission);
    }
  }

  // Takes the place of Hadoop's own inside a file system. What is around it, for check sums, stays: with Hive's classes
  // there is one that renames otherwise.
  public void replaceIn(FileSystem outer, Configuration conf) throws Exception {
    if (NativeIO.isAvailable() || !(outer instanceof LocalFileSystem)) {
      return;
    }
    FileSystem hadoops = ((LocalFileSystem) outer).getRawFileSystem();
    if (hadoops.getClass() == RawLocalFileSystem.class) {
      initialize(URI.create("file:///"), conf);
      setWorkingDirectory(hadoops.getWorkingDirectory());
      Field inside = FilterFileSystem.class.getDeclaredField("fs");
      inside.setAccessible(true);
      inside.set(outer, this);
    }
  }
}
"""

_replacing = threading.Lock()
# The JVM in which the file system has been replaced.
_done: list[Any] = []


def use_local_files(jvm: JavaView) -> None:
    """Makes the cached file system of the driver's JVM set permissions by itself, unless another class is
    configured."""
    with _replacing:
        if jvm.java not in _done:
            files = jvm.java.org.apache.hadoop.fs.FileSystem
            replace_in(jvm, files.get(jvm.java.java.net.URI.create("file:///"), jvm.hadoop_conf))
            _done[:] = [jvm.java]


def replace_in(jvm: JavaView, outer: Any) -> None:
    """Replaces the inner file system of a `LocalFileSystem`."""
    beside = jvm.java.org.apache.hadoop.fs.FileSystem
    janino.instance(jvm, _SOURCE, "groundskeeper.LocalFiles", beside=beside).replaceIn(outer, jvm.hadoop_conf)
