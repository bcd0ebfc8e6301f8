"""Makes Hudi (1.2.0) look at the table's lock once more right before it makes an instant or completes one.

A worker may be suspended in the midst of a call of Hudi's client: while a clean deletes, or between the commits of the
metadata table and of the table. When it goes on, others may have taken its lock and completed the same instant. Hudi
only looks whether the inflight file exists, and would complete the instant once more. All times that Hudi gives to
instants come from the table's clock (`jobs.hudi.instant_generators`), also in the metadata table, so the clock asks
there. So does the storage before each other change (`jobs.hudi.held_storage`). Nothing is asked while the last proof is
younger than `FRESH_SECONDS`: no lock is taken from a client that has been silent for so short a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jobs.errors import JobError
from jobs.hudi.jvm import translated

FRESH_SECONDS = 2.0
_LONGEST_CALL = 10_000  # milliseconds

IMPORTS = """
import org.apache.hudi.exception.HoodieException;
"""
SOURCE = """
class LockLostException extends HoodieException {
  LockLostException(String why) {
    super(why);
  }
}

class HeldLocks {
  // The lock that a job has just taken for what this thread does. No thread is the calling one.
  public HeldLock hold(Thread thread, long fresh) {
    return new HeldLock(thread == null ? Thread.currentThread() : thread, fresh);
  }

  // For the calling thread.
  public HeldLock setAside() {
    return HeldLock.setAside();
  }

  public void takeBack(HeldLock held) {
    HeldLock.takeBack(held);
  }
}

class HeldLock {
  private static final ConcurrentHashMap BY_THREAD = new ConcurrentHashMap();
  // A proof may be too old at once, if its storage is slow or the worker was suspended again. Milliseconds.
  private static final int LEAST_PROOFS = 3;
  private static final long LONGEST = 30000L;

  private final Thread holder;
  private final long fresh;
  // Both clocks: one may stand still while the machine does, the other may be set.
  private long provedAt;
  private long provedAfter;
  private boolean isWanted;
  private String whyLost;
  private boolean isEnded;

  HeldLock(Thread holder, long fresh) {
    this.holder = holder;
    this.fresh = fresh;
    begin();
    BY_THREAD.put(holder, this);
  }

  // Throws LockLostException if the calling thread works under a lock that is not its own any more.
  static void require() {
    HeldLock held = (HeldLock) BY_THREAD.get(Thread.currentThread());
    if (held != null) {
      held.prove();
    }
  }

  static HeldLock setAside() {
    return (HeldLock) BY_THREAD.remove(Thread.currentThread());
  }

  static void takeBack(HeldLock held) {
    if (held != null) {
      BY_THREAD.put(Thread.currentThread(), held);
    }
  }

  // Not private: Janino makes a static method of a private one, which is synchronized with all others of its class.
  synchronized void prove() {
    long since = now();
    for (int proofs = 0; !isFresh(); proofs++) {
      if (proofs >= LEAST_PROOFS && now() - since > LONGEST) {
        throw new LockLostException("Each proof that the lock is still ours took too long.");
      }
      begin();
      isWanted = true;
      whyLost = "The worker did not find out whether the lock is still ours.";
      notifyAll();
      try {
        // A proof itself tries for as long if the lock's server is away.
        while (isWanted && !isEnded && now() - provedAfter < 4 * LONGEST) {
          wait(1000L);
        }
      } catch (InterruptedException e) {
        throw new HoodieException("Interrupted while the table's lock was proved", e);
      }
      if (whyLost != null) {
        provedAt = 0L;
        throw new LockLostException(whyLost);
      }
    }
  }

  private void begin() {
    provedAt = System.currentTimeMillis();
    provedAfter = now();
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
    return isWanted && !isEnded;
  }

  public synchronized void answer(String whyLost) {
    this.whyLost = whyLost;
    isWanted = false;
    notifyAll();
  }

  public synchronized void end() {
    isEnded = true;
    BY_THREAD.remove(holder, this);
    notifyAll();
  }
}
"""


@contextmanager
def proved_again(locks: Any, why_lost: Callable[[], str | None], thread: Any = None) -> Iterator[None]:
    """Makes the clocks of tables ask `why_lost` before they give a time to a thread of the JVM, by default the calling
    one; if the answer is not None, Hudi's call fails with a `LockLostError` that has it. Call it when the lock was just
    taken. `locks` is the JVM's `HeldLocks`."""
    with translated("noting who holds the table's lock"):
        held = locks.hold(thread, int(FRESH_SECONDS * 1000))
    ended = threading.Event()
    answering = threading.Thread(target=_answer, args=(held, why_lost, ended), name="lock proof", daemon=True)
    answering.start()
    try:
        yield
    finally:
        ended.set()
        # If the JVM is gone, the thread ends by itself.
        with suppress(JobError, OSError), translated("noting that the table's lock is free"):
            held.end()
        answering.join()


@contextmanager
def set_aside(locks: Any) -> Iterator[None]:
    """Lets the calling thread try to take another lock, whose file it may create, as if it held none. If the block
    fails, the thread goes on under the lock that it held before."""
    with translated("setting a held lock aside"):
        aside = locks.setAside()
    try:
        yield
    except BaseException:
        with suppress(JobError, OSError), translated("going on under the held lock"):
            locks.takeBack(aside)
        raise


def _answer(held: Any, why_lost: Callable[[], str | None], ended: threading.Event) -> None:
    # Most locks are held for a shorter time. A suspended worker has waited long enough when it goes on.
    if ended.wait(FRESH_SECONDS):
        return
    with suppress(JobError, OSError), translated("proving the table's lock"):
        while not ended.is_set():
            if held.isAsked(_LONGEST_CALL):
                held.answer(why_lost())
