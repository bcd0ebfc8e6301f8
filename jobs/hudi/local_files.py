"""Makes Hadoop's local file system read and set permissions without starting processes. PySpark has no native library
of Hadoop, so `RawLocalFileSystem` (3.3.4) starts `chmod` for each new file and folder: about fifty times in a small
compaction of a table on a local disk, mostly with the table's lock held. When a caller needs permissions, as each
recursive listing does, `RawLocalFileSystem` starts `ls` for each file, and accesses the disk five times for the rest of
a file's status. Each reader allocates a buffer of the requested size. Hudi requests 16 MB for a log, and 32 MB for an
HFile, even if the file has only some KB."""

from __future__ import annotations

import threading
from typing import Any

from jobs.hudi import janino
from jobs.hudi.java_view import JavaView

_SOURCE = """
package groundskeeper;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.nativeio.NativeIO;

public class LocalFiles extends RawLocalFileSystem {
  private static final int MOST_BUFFERED = 128 << 10;
  private static final String READ =
      "unix:size,isDirectory,lastModifiedTime,lastAccessTime,mode,uid,gid";
  // The names of owners and groups by their numbers.
  private final Map owners = new ConcurrentHashMap();
  private final Map groups = new ConcurrentHashMap();
  private long blockBytes;

  public LocalFiles() {}

  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    blockBytes = getDefaultBlockSize(new Path(uri));
  }

  public FSDataInputStream open(Path path, int buffered) throws IOException {
    return super.open(path, Math.min(buffered, MOST_BUFFERED));
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    java.nio.file.Path file = pathToFile(path).toPath();
    try {
      Map read = Files.readAttributes(file, READ, new LinkOption[0]);
      int mode = ((Integer) read.get("mode")).intValue();
      return new FileStatus(
          ((Long) read.get("size")).longValue(),
          ((Boolean) read.get("isDirectory")).booleanValue(),
          1,
          blockBytes,
          ((FileTime) read.get("lastModifiedTime")).toMillis(),
          ((FileTime) read.get("lastAccessTime")).toMillis(),
          new FsPermission((short) (mode & 01777)),
          name(owners, file, "owner", read.get("uid")),
          name(groups, file, "group", read.get("gid")),
          path.makeQualified(getUri(), getWorkingDirectory()));
    } catch (NoSuchFileException e) {
      throw new FileNotFoundException("File " + path + " does not exist");
    } catch (Exception e) {
      // The disk may lack these attributes, or there is an error. Hadoop's own method handles both.
      return super.getFileStatus(path);
    }
  }

  public FileStatus[] listStatus(Path folder) throws IOException {
    return listStatus(folder, null);
  }

  // Hadoop's own method makes five paths of each name, and asks the disk also for files that the filter leaves out,
  // which are the check sums.
  public FileStatus[] listStatus(Path folder, PathFilter filter) throws IOException {
    String[] names = pathToFile(folder).list();
    if (names == null) {
      FileStatus[] found = super.listStatus(folder);
      return filter == null || found.length == 0 || filter.accept(found[0].getPath()) ? found : new FileStatus[0];
    }
    URI uri = folder.makeQualified(getUri(), getWorkingDirectory()).toUri();
    String before = uri.getPath().endsWith("/") ? uri.getPath() : uri.getPath() + "/";
    List found = new ArrayList();
    for (int number = 0; number < names.length; number++) {
      try {
        Path path = new Path(new URI(uri.getScheme(), uri.getAuthority(), before + names[number], null, null));
        if (filter == null || filter.accept(path)) {
          found.add(getFileStatus(path));
        }
      } catch (FileNotFoundException e) {
        // Somebody has deleted the file since the listing.
      } catch (URISyntaxException e) {
        throw new IOException(e);
      }
    }
    return (FileStatus[]) found.toArray(new FileStatus[0]);
  }

  private static String name(Map known, java.nio.file.Path file, String whose, Object number) throws IOException {
    String name = (String) known.get(number);
    if (name == null) {
      name = String.valueOf(Files.getAttribute(file, "unix:" + whose, new LinkOption[0]));
      known.put(number, name);
    }
    return name;
  }

  public void setPermission(Path path, FsPermission permission) throws IOException {
    try {
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
    } catch (Exception e) {
      // The disk may lack such permissions, or there is an error. Hadoop's own method handles both.
      super.setPermission(path, permission);
    }
  }

  // Replaces Hadoop's own class inside a file system. The outer file system, which handles check sums, stays, because
  // Hive's classes bring an outer file system that renames in another way.
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
