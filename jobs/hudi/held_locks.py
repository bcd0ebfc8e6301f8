"""Java classes that know which threads of the driver, and which tasks of Spark in its JVM, work under a table's lock,
or for a pending instant of the job without the lock.

`jobs.hudi.held_lock` says who holds a lock or an instant, and proves that it is still held. The table's clock
(`jobs.hudi.instant_generators`), Hudi's storage (`jobs.hudi.held_storage`), its Parquet files (`jobs.hudi.held_files`)
and the threads that share the work of another one (`jobs.hudi.driver_threads`) ask here.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from jobs.hudi import janino

LOST = "The table's lock is lost: "
LOST_INSTANT = "The instant is lost: "
"""The messages of the exceptions begin with these texts."""

_SOURCE = """
package groundskeeper;

import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hudi.exception.HoodieException;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;

// A thread that works under a lock, and its job group, which the tasks of its Spark jobs have.
class LockUser {
  static final String GROUP = "spark.jobGroup.id";

  final Thread thread = Thread.currentThread();
  final String group = SparkContext.getOrCreate().getLocalProperty(GROUP);
}

public class HeldLocks {
  // The calling thread.
  public Object user() {
    return new LockUser();
  }

  public void interrupt(Object user) {
    ((LockUser) user).thread.interrupt();
  }

  // Registers the lock that a job has just taken for this user; null means the calling thread.
  public HeldLock hold(Object user, long fresh) {
    return new HeldLock(user == null ? new LockUser() : (LockUser) user, fresh);
  }

  // Registers that the calling thread works for an instant, until `end` is called; null if the thread works under a
  // lock.
  public HeldLock holdInstant(long fresh) {
    return HeldLock.current() == null ? new HeldInstant(fresh) : null;
  }

  // The calling thread works without its lock until `takeBack` is called.
  public HeldLock setAside() {
    return HeldLock.setAside();
  }

  public void takeBack(HeldLock held) {
    HeldLock.join(held);
  }
}

public class HeldLock {
  // The held locks by thread and by job group, and the held instants by their numbers.
  static final ConcurrentHashMap HELD = new ConcurrentHashMap();
  // A proof may be too old when it arrives, because its storage was slow or the worker was suspended again. At least
  // this many proofs are tried, and more until LONGEST milliseconds have passed.
  private static final int LEAST_PROOFS = 3;
  private static final long LONGEST = 30000L;
  // A single proof may take this long, because it tries again while the lock's server is away.
  private static final long MOST_OF_A_PROOF = 4 * LONGEST;
  private static final String UNKNOWN = "The worker did not find out whether the lock is still ours.";

  final LockUser user;
  private final long fresh;
  // The time of the last proof by two clocks: one may stand still while the machine is suspended, somebody may set the
  // other.
  long provedAt = System.currentTimeMillis();
  private long provedAfter = now();
  // When the prover took the question that it answers next.
  private long takenAt;
  private long takenAfter;
  private boolean isWanted;
  private long answers;
  String whyLost;
  boolean isEnded;
  boolean isJudged;

  HeldLock(LockUser user, long fresh) {
    this.user = user;
    this.fresh = fresh;
    if (user != null) {
      HELD.put(user.thread, this);
    }
    if (user != null && user.group != null) {
      HELD.put(user.group, this);
    }
  }

  // Throws an exception if the calling thread works under a lock that is not its own any more.
  public static void require() {
    HeldLock held = current();
    if (held != null) {
      held.prove();
    }
  }

  // The lock under which the calling thread works; null if there is none.
  public static HeldLock current() {
    Thread caller = Thread.currentThread();
    TaskContext task = TaskContext.get();
    String number = task == null ? null : task.getLocalProperty(HeldInstant.NUMBER);
    if (number != null) {
      Object instant = HELD.get(number);
      return instant == null ? HeldInstant.ENDED : (HeldLock) instant;
    }
    String group = task == null ? null : task.getLocalProperty(LockUser.GROUP);
    Object held = HELD.get(caller);
    return (HeldLock) (held == null && group != null ? HELD.get(group) : held);
  }

  // The calling thread works under this lock from now on.
  public static void join(HeldLock held) {
    if (held != null) {
      HELD.put(Thread.currentThread(), held);
    }
  }

  public static HeldLock setAside() {
    return (HeldLock) HELD.remove(Thread.currentThread());
  }

  // Not private, because Janino makes a private method a static one, synchronized with all others of its class.
  synchronized void prove() {
    long since = now();
    try {
      for (int proofs = 0; !isEnded && !isFresh(); proofs++) {
        if (proofs >= LEAST_PROOFS && now() - since > LONGEST) {
          throw lost("Each proof that the lock is still ours took too long.");
        }
        ask();
      }
      // A task may continue after the lock was released, or after the end of the job that started it.
      while (isEnded && !isJudged && now() - since < MOST_OF_A_PROOF) {
        wait(1000L);
      }
    } catch (InterruptedException e) {
      throw new HoodieException("Interrupted while the table's lock was proved", e);
    }
    if (isEnded && (!isJudged || whyLost != null)) {
      throw lost(whyLost == null ? UNKNOWN : whyLost);
    }
  }

  synchronized void ask() throws InterruptedException {
    isWanted = true;
    notifyAll();
    long answered = answers;
    long begun = now();
    while (answers == answered && !isEnded && now() - begun < MOST_OF_A_PROOF) {
      wait(1000L);
    }
    if (!isEnded && (answers == answered || whyLost != null)) {
      throw lost(whyLost == null ? UNKNOWN : whyLost);
    }
  }

  // The exception is one of Hudi's classes, because Spark does not find our classes when a task sends an exception to
  // the driver.
  HoodieException lost(String why) {
    return new HoodieException("@LOST@" + why);
  }

  private boolean isFresh() {
    return System.currentTimeMillis() - provedAt < fresh && now() - provedAfter < fresh;
  }

  private static long now() {
    return System.nanoTime() / 1000000L;
  }

  // Waits until a proof is wanted. Returns false if none is wanted within this many milliseconds, or if the lock is
  // released.
  public synchronized boolean isAsked(long most) throws InterruptedException {
    long begun = now();
    while (!isWanted && !isEnded && now() - begun < most) {
      wait(most);
    }
    // Whoever asks from now on, perhaps after the worker was suspended, needs a later proof.
    takenAt = System.currentTimeMillis();
    takenAfter = now();
    boolean isAsked = isWanted && !isEnded;
    isWanted = false;
    return isAsked;
  }

  public synchronized void answer(String whyLost) {
    this.whyLost = whyLost;
    provedAt = whyLost == null ? takenAt : 0L;
    provedAfter = takenAfter;
    answers++;
    notifyAll();
  }

  public synchronized void end() {
    isEnded = true;
    HELD.remove(user.thread, this);
    notifyAll();
  }

  // Stores whether the lock was ours until it was released: null, or the reason why not, after which tasks change
  // nothing more.
  public synchronized void judge(String whyLost) {
    this.whyLost = whyLost;
    isJudged = true;
    if (user.group != null && whyLost == null) {
      HELD.remove(user.group, this);
    }
    notifyAll();
  }
}

// A pending instant for which Spark's tasks write files without the lock. Each task has the number of its instant, so a
// task that outlives the work for the instant changes nothing more, even if its job group holds the lock then.
public class HeldInstant extends HeldLock {
  static final String NUMBER = "groundskeeper.instant";
  static final HeldInstant ENDED = new HeldInstant();
  private static final String OVER = "The job has ended its work for it.";

  private final String number;

  HeldInstant(long fresh) {
    super(null, fresh);
    number = UUID.randomUUID().toString();
    // The work begins with a proof, because the worker may have been suspended since it began the instant.
    provedAt = 0L;
    HELD.put(number, this);
    SparkContext.getOrCreate().setLocalProperty(NUMBER, number);
  }

  private HeldInstant() {
    super(null, 0L);
    number = "";
    end();
  }

  HoodieException lost(String why) {
    return new HoodieException("@INSTANT@" + why);
  }

  // Only the thread that has created this object may call this method.
  public synchronized void end() {
    isEnded = true;
    isJudged = true;
    whyLost = whyLost == null ? OVER : whyLost;
    if (HELD.remove(number, this)) {
      SparkContext.getOrCreate().setLocalProperty(NUMBER, null);
    }
    notifyAll();
  }
}
""".replace("@LOST@", LOST).replace("@INSTANT@", LOST_INSTANT)


@lru_cache(maxsize=1)
def _compiled(java: Any) -> Any:
    beside = java.org.apache.hudi.exception.HoodieException
    return janino.compiled(java, _SOURCE, "groundskeeper.HeldLocks", beside=beside)


_compiling = threading.Lock()


def held_locks(java: Any) -> Any:
    """Returns the class `HeldLocks` of this JVM; classes that are compiled beside it may use it."""
    with _compiling:
        return _compiled(java)
