"""Java classes that do the same work for each value of a list: a few values in the calling thread, and some more in
several threads, because most of that work waits for the storage."""

IMPORTS = """
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
"""

SOURCE = """
abstract class DriverWork {
  abstract Object of(Object value) throws Exception;
}

// Does work for each of a few values in the calling thread, and for each of some more in threads that all slots share.
class DriverThreads implements ThreadFactory {
  private static final long IDLE_SECONDS = 60;

  private final int few;
  private final int most;
  private final ThreadPoolExecutor pool;

  DriverThreads(int few, int most) {
    this.few = few;
    this.most = most;
    pool = new ThreadPoolExecutor(few, few, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue(), this);
    pool.allowCoreThreadTimeOut(true);
  }

  public Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "groundskeeper driver");
    thread.setDaemon(true);
    return thread;
  }

  boolean take(List data) {
    return data.size() <= most;
  }

  // Returns what the work gives for each value, in their order. When it returns or raises, no thread works on them.
  List done(List data, DriverWork work) {
    return data.size() <= few ? here(data, work) : shared(data, work);
  }

  private static List here(List data, DriverWork work) {
    List found = new ArrayList();
    for (Iterator each = data.iterator(); each.hasNext();) {
      try {
        found.add(work.of(each.next()));
      } catch (Exception e) {
        throw DriverParts.failed(e);
      }
    }
    return found;
  }

  // Divides the values into lists, and returns what the work gives for each of these lists.
  List doneInParts(List data, DriverWork work) {
    List parts = new ArrayList();
    for (int number = 0; number < data.size(); number++) {
      if (number < few) {
        parts.add(new ArrayList());
      }
      ((List) parts.get(number % few)).add(data.get(number));
    }
    return data.size() <= few ? here(Collections.singletonList(data), work) : shared(parts, work);
  }

  private List shared(List data, final DriverWork work) {
    // A thread works under the lock of the calling thread.
    final HeldLock held = HeldLock.current();
    List asked = new ArrayList();
    for (Iterator each = data.iterator(); each.hasNext();) {
      final Object value = each.next();
      asked.add(pool.submit(new Callable() {
        public Object call() throws Exception {
          HeldLock.join(held);
          try {
            return work.of(value);
          } finally {
            HeldLock.setAside();
          }
        }
      }));
    }
    List found = new ArrayList();
    Throwable failure = null;
    boolean isInterrupted = false;
    for (Iterator each = asked.iterator(); each.hasNext();) {
      Future future = (Future) each.next();
      while (true) {
        try {
          found.add(future.get());
          break;
        } catch (InterruptedException e) {
          isInterrupted = true;
        } catch (ExecutionException e) {
          failure = failure == null ? e.getCause() : failure;
          break;
        }
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
    if (failure instanceof Error) {
      throw (Error) failure;
    }
    if (failure != null) {
      throw DriverParts.failed((Exception) failure);
    }
    return found;
  }
}
"""
