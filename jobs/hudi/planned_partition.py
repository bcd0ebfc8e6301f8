"""A Java class with what Hudi's planner of cleans (`CleanPlanner`, 1.2.0) finds in one partition."""

IMPORTS = """
import org.apache.hudi.common.model.CleanFileInfo;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodieBaseFile;
import org.apache.hudi.common.model.HoodieFileGroup;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.table.view.SyncableFileSystemView;
import org.apache.hudi.common.util.collection.Pair;
"""

SOURCE = """
// The deletable files of one partition, file group by file group, and what the planner has listed for that.
class PlannedPartition {
  final String partition;
  final boolean isDropped;
  final List paths;
  final List latest = new ArrayList();
  int listed;
  private final Map sizes = new HashMap();
  private final Map groups = new HashMap();

  PlannedPartition(Pair deletable, SyncableFileSystemView view, String partition) {
    this.partition = partition;
    isDropped = ((Boolean) deletable.getLeft()).booleanValue();
    paths = (List) deletable.getRight();
    Set names = new HashSet();
    for (Iterator each = paths.iterator(); each.hasNext();) {
      names.add(nameOf((CleanFileInfo) each.next()));
    }
    read(view.getAllFileGroups(partition), names);
    read(view.getAllReplacedFileGroups(partition), names);
    if (names.isEmpty()) {
      return;
    }
    for (Iterator each = view.getLatestFileSlices(partition).iterator(); each.hasNext();) {
      for (Iterator its = sizesOf((FileSlice) each.next()).keySet().iterator(); its.hasNext();) {
        String name = (String) its.next();
        if (names.contains(name)) {
          latest.add(partition + "/" + name);
        }
      }
    }
  }

  private static String nameOf(CleanFileInfo info) {
    return info.getFilePath().substring(info.getFilePath().lastIndexOf('/') + 1);
  }

  // The sizes of the slice's files by name.
  private static Map sizesOf(FileSlice slice) {
    Map found = new HashMap();
    if (slice.getBaseFile().isPresent()) {
      HoodieBaseFile base = (HoodieBaseFile) slice.getBaseFile().get();
      found.put(base.getFileName(), Long.valueOf(base.getFileSize()));
    }
    for (Iterator logs = slice.getLogFiles().iterator(); logs.hasNext();) {
      HoodieLogFile log = (HoodieLogFile) logs.next();
      found.put(log.getFileName(), Long.valueOf(log.getFileSize()));
    }
    return found;
  }

  private void read(Stream found, Set names) {
    for (Iterator each = found.iterator(); each.hasNext();) {
      HoodieFileGroup group = (HoodieFileGroup) each.next();
      for (Iterator slices = group.getAllRawFileSlices().iterator(); slices.hasNext();) {
        Map its = sizesOf((FileSlice) slices.next());
        listed += its.size();
        its.keySet().retainAll(names);
        sizes.putAll(its);
        for (Iterator name = its.keySet().iterator(); name.hasNext();) {
          groups.put(name.next(), group.getFileGroupId().getFileId());
        }
      }
    }
  }

  // The view does not know the source files of a bootstrapped table. Each of them comes after the file that was made of
  // it.
  private Object groupOf(int number) {
    return groups.get(nameOf((CleanFileInfo) paths.get(number)));
  }

  int endOfGroup(int from) {
    Object group = groupOf(from);
    int end = from + 1;
    while (end < paths.size() && (groupOf(end) == null || groupOf(end).equals(group))) {
      end++;
    }
    return end;
  }

  long sizeOf(int number) {
    Long size = (Long) sizes.get(nameOf((CleanFileInfo) paths.get(number)));
    return size == null ? 0 : Math.max(size.longValue(), 0);
  }
}
"""
