"""Joins by a 64-bit hash of the key, which Spark sorts and looks up faster than texts: a Java class.

Equal keys have equal hashes. Different keys may have equal hashes, too, so the join also compares the keys.
"""

SOURCE = """
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.XxHash64;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.joins.HashJoin$;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.Seq;

class HashedJoin {
  // A plan whose joins are by hashes where that is faster: in memory, and of rows in no order. A sort of texts compares
  // each row with twenty others, unless the rows are nearly sorted; a sort of numbers looks at each byte once.
  static SparkPlan of(SparkPlan plan, boolean areSorted) {
    List children = new ArrayList();
    for (int at = 0; at < plan.children().size(); at++) {
      children.add(of((SparkPlan) plan.children().apply(at), areSorted));
    }
    if (plan instanceof ShuffledHashJoinExec) {
      return inMemory((ShuffledHashJoinExec) plan);
    }
    if (plan instanceof SortMergeJoinExec && !areSorted) {
      return merged((SortMergeJoinExec) plan);
    }
    return children.isEmpty() ? plan : (SparkPlan) plan.withNewChildren(PythonUtils.toSeq(children));
  }

  // Spark has no map of numbers for joins that keep the rows without a key, and semi and anti joins would take equal
  // hashes for equal keys.
  private static SparkPlan inMemory(ShuffledHashJoinExec join) {
    String how = join.joinType().sql();
    boolean isLeft = join.buildSide().toString().equals("BuildLeft");
    boolean isOfKeys = how.equals("INNER") || how.equals(isLeft ? "RIGHT OUTER" : "LEFT OUTER");
    if (!isOfKeys || isNumber(join.leftKeys())) {
      return join;
    }
    Option equal = Option.apply(equal(join.leftKeys(), join.rightKeys(), join.condition()));
    return new ShuffledHashJoinExec(
        hash(join.leftKeys()), hash(join.rightKeys()), join.joinType(), join.buildSide(), equal, join.left(),
        join.right(), join.isSkewJoin());
  }

  private static SparkPlan merged(SortMergeJoinExec join) {
    boolean areSorts = join.left() instanceof SortExec && join.right() instanceof SortExec;
    if (!areSorts || isNumber(join.leftKeys())) {
      return join;
    }
    Option equal = Option.apply(equal(join.leftKeys(), join.rightKeys(), join.condition()));
    return new SortMergeJoinExec(
        hash(join.leftKeys()), hash(join.rightKeys()), join.joinType(), equal, sorted(join.left(), join.leftKeys()),
        sorted(join.right(), join.rightKeys()), join.isSkewJoin());
  }

  private static SparkPlan sorted(SparkPlan sort, Seq keys) {
    Seq none = PythonUtils.toSeq(new ArrayList());
    Expression hash = (Expression) hash(keys).head();
    Seq order = one(new SortOrder(hash, Ascending$.MODULE$, NullsFirst$.MODULE$, none));
    return new SortExec(order, false, ((SortExec) sort).child(), 0);
  }

  private static boolean isNumber(Seq keys) {
    Seq packed = HashJoin$.MODULE$.rewriteKeyExpr(keys);
    return packed.size() == 1 && ((Expression) packed.head()).dataType().equals(DataTypes.LongType);
  }

  // The hash is null if a key is, because a null equals no other one.
  private static Seq hash(Seq keys) {
    Expression found = new XxHash64(keys);
    for (int at = 0; at < keys.size(); at++) {
      Expression key = (Expression) keys.apply(at);
      Expression none = Literal.create(null, DataTypes.LongType);
      found = key.nullable() ? new If(new IsNull(key), none, found) : found;
    }
    return one(found);
  }

  private static Expression equal(Seq left, Seq right, Option more) {
    Expression found = more.isEmpty() ? null : (Expression) more.get();
    for (int at = left.size() - 1; at >= 0; at--) {
      Expression each = new EqualTo((Expression) left.apply(at), (Expression) right.apply(at));
      found = found == null ? each : new And(each, found);
    }
    return found;
  }

  private static Seq one(Object member) {
    List found = new ArrayList();
    found.add(member);
    return PythonUtils.toSeq(found);
  }
}
"""
