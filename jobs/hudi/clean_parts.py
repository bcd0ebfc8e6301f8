"""Plans a clean in parts, each of which becomes a clean instant of its own, with Hudi's `CleanPlanner` (1.2.0).

Hudi's `CleanPlanActionExecutor` collects the files of all partitions before the first one is deleted. A part has a
bounded number of them, and the driver holds the listings of few partitions at the same time.

Whoever reads the last clean of a table assumes that it was a complete one. So every part except for the last one says
that something is left:

- Hudi's cleaner looks only at partitions that were written since the `earliestCommitToRetain` of the last clean. It
looks at all partitions if a savepoint is gone that the last clean has noted (`CleanPlanner.isAnySavepointDeleted`), or
if the retained commit is before the timeline (`isBeforeTimelineStarts`).
- Archival keeps the commits that replaced file groups, from `earliestCommitToRetain` on, or from the first noted
  savepoint on (`ClusteringUtils.getEarliestInstantToRetainForClustering`). Without them, the rows of replaced files
  that are still there would count again.
- Time travel and savepoints are refused before `earliestCommitToRetain` (`TimelineUtils.validateTimestampAsOf`,
  `SavepointActionExecutor.getLastCommitRetained`), because files have been deleted.
- No further clean is planned until there are commits after `lastCompletedCommitTimestamp`.

If a clean notes a savepoint that never existed, all of this follows, so a part notes one. Hudi 0.15, which may write
tables before version 8, looks for the commit of such a savepoint and fails. On these tables a part repeats the
`earliestCommitToRetain` of the clean before it. A part of a clean by file versions, which has no such commit itself,
does the same.
"""

from __future__ import annotations

from typing import Any

from jobs.hudi import janino, planned_partition
from jobs.hudi.java_view import JavaView

_IMPORTS = """
package groundskeeper;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.hudi.avro.model.HoodieActionInstant;
import org.apache.hudi.avro.model.HoodieCleanMetadata;
import org.apache.hudi.avro.model.HoodieCleanerPlan;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.function.SerializableFunction;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.common.util.CleanerUtils;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.StringUtils;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.table.action.clean.CleanPlanner;
"""
_SOURCE = """
public class CleanParts {
  private static final String BEFORE_ALL = HoodieTimeline.INIT_INSTANT_TS;
  private static final int FIRST = 32;
  // Hudi's engine would send a longer list to executors, which do not have this class.
  private static final int MOST_PARTITIONS = 200;

  private final HoodieEngineContext context;
  private final int mostFiles;
  private final int mostListed;
  private final Option earliest;
  private final String lastCommit;
  private final List partitions;
  private final String earlier;
  private final Set noted;
  private final boolean isRemembered;
  private final int replacements;
  private int at;
  // How many paths of the partition `at` are in this part or in one before it.
  private int taken;
  private long allListed;
  private Map found;
  private List dropped;
  private int files;
  private long bytes;
  private List latest;
  private boolean isLast;

  // Chooses the partitions to examine, and the instant to retain. A part has at most `mostFiles` files, unless one file
  // group has more. About `mostListed` files are listed at once, unless one partition has more.
  public CleanParts(HoodieEngineContext context, HoodieWriteConfig config, HoodieTable table, int mostFiles,
                    int mostListed) throws IOException {
    this.context = context;
    this.mostFiles = mostFiles;
    this.mostListed = mostListed;
    CleanPlanner planner = new CleanPlanner(context, table, config);
    earliest = planner.getEarliestCommitToRetain();
    lastCommit = planner.getLastCompletedCommitTimestamp();
    partitions = new ArrayList(planner.getPartitionPathsToClean(earliest));
    Collections.sort(partitions);
    replacements = table.getActiveTimeline().getCompletedReplaceTimeline().countInstants();
    Option last = table.getCleanTimeline().filterCompletedInstants().lastInstant();
    HoodieCleanMetadata before =
        last.isPresent() ? table.getActiveTimeline().readCleanMetadata((HoodieInstant) last.get()) : null;
    boolean isUsable = before != null && !StringUtils.isNullOrEmpty(before.getEarliestCommitToRetain());
    earlier = isUsable ? before.getEarliestCommitToRetain() : BEFORE_ALL;
    noted = savepoints(before == null ? null : before.getExtraMetadata());
    isRemembered = isUsable && table.getSavepointTimestamps().containsAll(noted)
        && !table.getActiveTimeline().getCommitsTimeline().isBeforeTimelineStarts(earlier);
  }

  private static Set savepoints(Map extra) {
    Object names = extra == null ? null : extra.get(CleanerUtils.SAVEPOINTED_TIMESTAMPS);
    Set found = new HashSet(Arrays.asList((names == null ? "" : (String) names).split(",")));
    found.remove("");
    return found;
  }

  // Begins a part with this partition, without the paths of it that other parts have.
  public void begin(int at, int taken) {
    found = new TreeMap();
    dropped = new ArrayList();
    files = 0;
    bytes = 0;
    latest = new ArrayList();
    this.at = at;
    this.taken = taken;
  }

  // Returns whether the decisions of the beginning still hold. Hudi's planner finds nothing on a timeline that is too
  // short. If the last clean names no retained instant, archival takes the files of all earlier replacements for
  // deleted.
  public boolean holdsFor(HoodieTable table, HoodieWriteConfig config) {
    if (!earliest.isPresent()) {
      return table.getActiveTimeline().getCompletedReplaceTimeline().countInstants() == replacements;
    }
    return table.getCompletedCommitsTimeline().countInstants() > config.getCleanerCommitsRetained();
  }

  // Adds files to the part. Returns false if it must be called again with a new table, because this table holds too
  // many listings. The listings are closed here, because Python may keep the table for long.
  public boolean add(HoodieTable table, HoodieWriteConfig config) {
    SyncableFileSystemView view = table.getHoodieView();
    try {
      return add(new CleanPlanner(context, table, config), view);
    } finally {
      view.close();
    }
  }

  private boolean add(final CleanPlanner planner, final SyncableFileSystemView view) {
    SerializableFunction look = new SerializableFunction() {
      public Object apply(Object partition) throws Exception {
        return new PlannedPartition(planner.getDeletePaths((String) partition, earliest), view, (String) partition);
      }
    };
    long listed = 0;
    int done = 0;
    while (at < partitions.size()) {
      if (listed >= mostListed) {
        return false;
      }
      long some = done == 0 ? FIRST : (mostListed - listed) * done / Math.max(listed, 1);
      int to = (int) Math.min(at + Math.max(1, Math.min(some, MOST_PARTITIONS)), partitions.size());
      List next = new ArrayList(partitions.subList(at, to));
      view.loadPartitions(next);
      for (Iterator each = context.map(next, look, next.size()).iterator(); each.hasNext();) {
        PlannedPartition planned = (PlannedPartition) each.next();
        listed += planned.listed;
        done++;
        latest.addAll(planned.latest);
        if (!take(planned)) {
          isLast = false;
          return true;
        }
        allListed += planned.listed;
        taken = 0;
        at++;
      }
    }
    isLast = true;
    return true;
  }

  // Returns false if files of this partition are left.
  private boolean take(PlannedPartition planned) {
    List paths = planned.paths;
    if (paths.size() <= taken && !planned.isDropped) {
      return true;
    }
    if (files >= mostFiles) {
      return false;
    }
    int end = taken;
    while (end < paths.size()) {
      int next = planned.endOfGroup(end);
      if (end > taken && files + next - taken > mostFiles) {
        break;
      }
      end = next;
    }
    if (files > 0 && files + end - taken > mostFiles) {
      return false;
    }
    for (int number = taken; number < end; number++) {
      bytes += planned.sizeOf(number);
    }
    if (end > taken) {
      found.put(planned.partition, CleanerUtils.convertToHoodieCleanFileInfoList(paths.subList(taken, end)));
    }
    files += end - taken;
    taken = end;
    if (end < paths.size()) {
      return false;
    }
    if (planned.isDropped) {
      dropped.add(planned.partition);
    }
    return true;
  }

  // Returns whether there is nothing to delete, but the next clean would have to look at as many files again.
  public boolean isWorthRemembering() {
    return earliest.isPresent() && !isRemembered && allListed > mostFiles;
  }

  // Returns the part as Hudi's plan. Only the last part also has the other members of Hudi's own plan of all files.
  public HoodieCleanerPlan plan(HoodieTable table, HoodieWriteConfig config, boolean mayBeMarked) {
    Set saved = new HashSet(table.isPartitioned() ? table.getSavepointTimestamps() : Collections.emptySet());
    HoodieActionInstant retained = null;
    if (earliest.isPresent()) {
      HoodieInstant instant = (HoodieInstant) earliest.get();
      retained = new HoodieActionInstant(instant.requestedTime(), instant.getAction(), instant.getState().name());
    }
    if (!isLast && mayBeMarked && retained != null) {
      saved.add(BEFORE_ALL);
    } else if (!isLast) {
      saved.addAll(noted);
      retained = new HoodieActionInstant(earlier, HoodieTimeline.COMMIT_ACTION, HoodieInstant.State.COMPLETED.name());
    }
    List names = new ArrayList(saved);
    Collections.sort(names);
    Map extra = new HashMap();
    if (!names.isEmpty()) {
      extra.put(CleanerUtils.SAVEPOINTED_TIMESTAMPS, String.join(",", names));
    }
    return new HoodieCleanerPlan(retained, isLast ? lastCommit : BEFORE_ALL, config.getCleanerPolicy().name(),
        Collections.emptyMap(), CleanPlanner.LATEST_CLEAN_PLAN_VERSION, found, dropped, extra);
  }

  public boolean isLast() {
    return isLast;
  }

  public long bytes() {
    return bytes;
  }

  // The files of latest slices that the planner wants to delete: paths in the table. There should be none.
  public List latest() {
    return latest;
  }

  public int partitions() {
    return partitions.size();
  }

  public int at() {
    return at;
  }

  public int taken() {
    return taken;
  }
}
"""


def clean_parts(jvm: JavaView, *arguments: Any) -> Any:
    """Returns the Java object that plans a clean; its constructor says what the arguments are."""
    source = _IMPORTS + planned_partition.IMPORTS + _SOURCE + planned_partition.SOURCE
    beside = jvm.java.org.apache.hudi.table.action.clean.CleanPlanner
    return janino.instance(jvm, source, "groundskeeper.CleanParts", *arguments, beside=beside)
