"""Threads of the driver share work that Hudi does for each value of a list, and return the results of Hudi's own
engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from jobs.hudi import janino
from jobs.hudi.jvm import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCE = """
package groundskeeper.test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.function.SerializableFunction;

public class Doubled {
  private final HoodieEngineContext engine;
  public final AtomicInteger done = new AtomicInteger();

  public Doubled(HoodieEngineContext engine) {
    this.engine = engine;
  }

  private static List values(int count) {
    List values = new ArrayList();
    for (int number = 0; number < count; number++) {
      values.add(Integer.valueOf(number));
    }
    return values;
  }

  public List mapped(int count, final int bad) {
    return engine.map(values(count), new SerializableFunction() {
      public Object apply(Object value) throws Exception {
        Thread.sleep(20);
        done.incrementAndGet();
        if (((Integer) value).intValue() == bad) {
          throw new java.io.IOException("of " + value);
        }
        return Integer.valueOf(2 * ((Integer) value).intValue());
      }
    }, count);
  }

  public List flatMapped(int count) {
    return engine.flatMap(values(count), new SerializableFunction() {
      public Object apply(Object value) {
        return Collections.nCopies(2, value).stream();
      }
    }, count);
  }

  public int done() {
    return done.get();
  }
}
"""


@pytest.mark.parametrize("count", [3, 200])
def test_results_keep_their_order_and_an_error_is_raised_after_all_work_has_ended(
    spark: SparkSession, count: int
) -> None:
    jvm = jvm_of(spark)
    beside = jvm.java.org.apache.hudi.client.common.HoodieSparkEngineContext
    engine: Any = janino.instance(jvm, _SOURCE, "groundskeeper.test.Doubled", jvm.engine_context, beside=beside)
    begun = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()  # type: ignore[union-attr]
    assert jvm.read(engine.mapped(count, -1)) == [2 * number for number in range(count)]
    assert jvm.read(engine.flatMapped(count)) == [number for number in range(count) for _ in range(2)]
    before = engine.done()
    with pytest.raises(Py4JJavaError, match="of 1"):
        engine.mapped(count, 1)
    # A few values are processed one after the other, so the third one is not begun.
    assert engine.done() == before + (count if count > 16 else 2)
    assert spark.sparkContext._jsc.sc().dagScheduler().nextJobId() == begun  # type: ignore[union-attr]
