"""Java classes that know which threads of the driver, and which tasks of Spark in its JVM, work under a table's lock.

`jobs.hudi.held_lock` says who holds a lock, and proves that it is still held. The table's clock
(`jobs.hudi.instant_generators`), Hudi's storage (`jobs.hudi.held_storage`) and the threads that share the work of
another one (`jobs.hudi.near_threads`) ask here.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from jobs.hudi import janino

LOST = "The table's lock is lost: "
"""The messages of the exceptions begin with this text."""

_SOURCE = """
package groundskeeper;

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

  // Takes note of the lock that a job has just taken for this user; null means the calling thread.
  public HeldLock hold(Object user, long fresh) {
    return new HeldLock(user == null ? new LockUser() : (LockUser) user, fresh);
  }

  // For the calling thread.
  public HeldLock setAside() {
    return HeldLock.setAside();
  }

  public void takeBack(HeldLock held) {
    HeldLock.join(held);
  }
}

public class HeldLock {
  // The held locks by thread, and by job group.
  private static final ConcurrentHashMap HELD = new ConcurrentHashMap();
  // A proof may be too old as soon as it is there, if its storage is slow or the worker was suspended again. Then this
  // many are tried, and more until LONGEST milliseconds have passed.
  private static final int LEAST_PROOFS = 3;
  private static final long LONGEST = 30000L;
  // A single proof may take this long, because it tries again while the lock's server is away.
  private static final long MOST_OF_A_PROOF = 4 * LONGEST;
  private static final String UNKNOWN = "The worker did not find out whether the lock is still ours.";

  private final LockUser user;
  private final long fresh;
  // The times of the last proof by two clocks: one may stand still while the machine does, the other may be set.
  private long provedAt = System.currentTimeMillis();
  private long provedAfter = now();
  // When the prover took the question that it answers next.
  private long takenAt;
  private long takenAfter;
  private boolean isWanted;
  private long answers;
  private String whyLost;
  private boolean isEnded;
  private boolean isJudged;

  HeldLock(LockUser user, long fresh) {
    this.user = user;
    this.fresh = fresh;
    HELD.put(user.thread, this);
    if (user.group != null) {
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
      // A task may go on when the lock has been released, or for longer than the job that began it.
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

  // The exception is one of Hudi, because Spark does not find a class of ours when a task hands it to the driver.
  private static HoodieException lost(String why) {
    return new HoodieException("@LOST@" + why);
  }

  private boolean isFresh() {
    return System.currentTimeMillis() - provedAt < fresh && now() - provedAfter < fresh;
  }

  private static long now() {
    return System.nanoTime() / 1000000L;
  }

  // Waits until a proof is wanted; returns false if none is within this many milliseconds, or at the end.
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

  // Notes whether the lock was ours until its end: null, or why not. In the latter case tasks change nothing more.
  public synchronized void judge(String whyLost) {
    this.whyLost = whyLost;
    isJudged = true;
    if (user.group != null && whyLost == null) {
      HELD.remove(user.group, this);
    }
    notifyAll();
  }
}
""".replace("@LOST@", LOST)


@lru_cache(maxsize=1)
def _compiled(java: Any) -> Any:
    beside = java.org.apache.hudi.exception.HoodieException
    return janino.compiled(java, _SOURCE, "groundskeeper.HeldLocks", beside=beside)


_compiling = threading.Lock()


def held_locks(java: Any) -> Any:
    """Returns the class `HeldLocks` of this JVM; classes that are compiled beside it may use it."""
    with _compiling:
        return _compiled(java)
