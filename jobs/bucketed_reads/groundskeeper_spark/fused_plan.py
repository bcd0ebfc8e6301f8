"""Spark's plan over co-located rows, without the work that only a shuffle needs: a Java class.

Spark plans an aggregate twice, before and after a shuffle, and copies each row of another data set. Without a
shuffle one aggregate is enough, and the scan of the files can be a part of the generated code that uses its rows.
"""

SOURCE = """
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.CollapseCodegenStages;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SQLExecutionRDD;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.Seq;

class FusedPlan {
  private final Map scans;
  private final SQLConf conf;

  private FusedPlan(Map scans, SQLConf conf) {
    this.scans = scans;
    this.conf = conf;
  }

  // The executable plan of a query over `scans`, the plans of reads by the ids of their data sets. `areSorted` says
  // that their rows are nearly in the order of their keys.
  static SparkPlan of(QueryExecution query, Map scans, SQLConf conf, int equalBits) {
    SparkPlan fused = oneAggregate(new FusedPlan(scans, conf).fused(query.executedPlan()));
    SparkPlan plan = HashedJoin.of(fused, equalBits);
    for (int at = 0; at < query.preparations().size(); at++) {
      Rule rule = (Rule) query.preparations().apply(at);
      if (rule instanceof CollapseCodegenStages) {
        plan = (SparkPlan) rule.apply(plan);
      }
    }
    return plan;
  }

  // The tasks get the settings by which the plan was made.
  static RDD executed(SparkPlan plan, SQLConf conf) {
    return new SQLExecutionRDD(plan.execute(), conf);
  }

  // The plan without the wrappers of generated code, with the reads in place of their data sets. The scan of the files
  // can then be a part of the generated code that uses its rows.
  private SparkPlan fused(SparkPlan plan) {
    if (plan instanceof WholeStageCodegenExec || plan instanceof InputAdapter) {
      return fused((SparkPlan) plan.children().head());
    }
    if (plan instanceof RDDScanExec) {
      RDDScanExec scan = (RDDScanExec) plan;
      SparkPlan read = (SparkPlan) scans.get(Integer.valueOf(scan.rdd().id()));
      if (read == null) {
        return plan;
      }
      // Columns have ids, by which the operators above name them; Spark renames one side of a table joined with itself.
      return read.output().mkString(",").equals(scan.output().mkString(","))
          ? fused(read)
          : new RDDScanExec(
              scan.output(), executed(read, conf), scan.name(), scan.outputPartitioning(), scan.outputOrdering());
    }
    List children = new ArrayList();
    for (int at = 0; at < plan.children().size(); at++) {
      children.add(fused((SparkPlan) plan.children().apply(at)));
    }
    return children.isEmpty() ? plan : (SparkPlan) plan.withNewChildren(PythonUtils.toSeq(children));
  }

  // Returns the plan with one aggregate at its top, in place of a partial and a final one, which only a shuffle needs.
  // Functions of distinct values are planned in more than two steps, and stay.
  private static SparkPlan oneAggregate(SparkPlan plan) {
    if (!(plan instanceof HashAggregateExec) || !(plan.children().head() instanceof HashAggregateExec)) {
      return plan;
    }
    HashAggregateExec last = (HashAggregateExec) plan;
    HashAggregateExec first = (HashAggregateExec) plan.children().head();
    if (!areAll(last.aggregateExpressions(), "Final") || !areAll(first.aggregateExpressions(), "Partial")) {
      return plan;
    }
    List functions = new ArrayList();
    for (int at = 0; at < first.aggregateExpressions().size(); at++) {
      AggregateExpression each = (AggregateExpression) first.aggregateExpressions().apply(at);
      functions.add(new AggregateExpression(
          each.aggregateFunction(), Complete$.MODULE$, false, each.filter(), each.resultId()));
    }
    return new HashAggregateExec(
        last.requiredChildDistributionExpressions(), last.isStreaming(), last.numShufflePartitions(),
        first.groupingExpressions(), PythonUtils.toSeq(functions), last.aggregateAttributes(), 0,
        last.resultExpressions(), first.child());
  }

  private static boolean areAll(Seq functions, String mode) {
    for (int at = 0; at < functions.size(); at++) {
      AggregateExpression each = (AggregateExpression) functions.apply(at);
      if (each.isDistinct() || !each.mode().toString().equals(mode)) {
        return false;
      }
    }
    return true;
  }
}
"""
