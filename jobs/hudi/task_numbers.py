"""Gives the Spark tasks of each session numbers that no other session has.

Hudi (1.2.0) names a file by the partition, the stage and the attempt of the task that writes it
(`FSUtils.makeWriteToken`), and Spark counts stages and attempts from 0 in each session. So two workers that have just
started would give the files of one plan the same names: a worker that was suspended, or an executor whose driver is
gone, could go on and replace a file that the next attempt has committed. An object store gives no notice of that.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from jobs.hudi import janino
from jobs.hudi.jvm import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hudi reads both numbers of a log's name as integers of 32 bits (`FSUtils.getStageIdFromLogPath`). Attempts from
# `1 << 30` on belong to `jobs.hudi.driver_data`.
_FIRST, _MOST = 1 << 20, 1 << 29
_SOURCE = """
package groundskeeper;

import java.lang.reflect.Field;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.DAGScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;

public class TaskNumbers {
  public TaskNumbers(SparkContext context, int first, int stage, int attempt) throws Exception {
    Field field = DAGScheduler.class.getDeclaredField("nextStageId");
    field.setAccessible(true);
    AtomicInteger stages = (AtomicInteger) field.get(context.dagScheduler());
    if (stages.get() < first) {
      stages.addAndGet(stage);
    }
    AtomicLong attempts = ((TaskSchedulerImpl) context.taskScheduler()).nextTaskId();
    if (attempts.get() < first) {
      attempts.addAndGet(attempt);
    }
  }
}
"""


def begin_at_random_numbers(session: SparkSession) -> None:
    """Lets the numbers of stages and attempts begin anew at random ones, once for each session."""
    spark: Any = session.sparkContext
    jvm = jvm_of(session)
    stage, attempt = (_FIRST + secrets.randbelow(_MOST) for _ in range(2))
    arguments = spark._jsc.sc(), _FIRST, stage, attempt
    beside = jvm.java.org.apache.spark.SparkContext
    janino.instance(jvm, _SOURCE, "groundskeeper.TaskNumbers", *arguments, beside=beside)
