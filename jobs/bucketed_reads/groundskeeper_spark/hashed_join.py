"""Joins by a number of 64 bits in place of the key, because Spark sorts and looks up numbers faster than texts: a Java
class.

Equal keys have equal numbers. Different keys may have equal numbers, too, so the join also compares the keys.
"""

SOURCE = """
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.BitwiseAnd;
import org.apache.spark.sql.catalyst.expressions.BitwiseOr;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.ShiftLeft;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.Substring;
import org.apache.spark.sql.catalyst.expressions.XxHash64;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.joins.HashJoin$;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.Seq;

class HashedJoin {
  private static final int BYTES = 8;
  // A shorter common prefix is kept, because cutting it off costs more than it gains.
  private static final int LEAST_CUT = 4;

  // The plan with joins by numbers. A sort of texts compares each row with twenty others, and a sort of numbers looks
  // at each byte once. `equalBits` is the number of bits with which all keys begin, as far as the files tell.
  static SparkPlan of(SparkPlan plan, int equalBits) {
    List children = new ArrayList();
    for (int at = 0; at < plan.children().size(); at++) {
      children.add(of((SparkPlan) plan.children().apply(at), equalBits));
    }
    if (plan instanceof ShuffledHashJoinExec) {
      return inMemory((ShuffledHashJoinExec) plan);
    }
    if (plan instanceof SortMergeJoinExec) {
      return merged((SortMergeJoinExec) plan, equalBits);
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

  private static SparkPlan merged(SortMergeJoinExec join, int equalBits) {
    boolean areSorts = join.left() instanceof SortExec && join.right() instanceof SortExec;
    if (!areSorts || isNumber(join.leftKeys())) {
      return join;
    }
    Option equal = Option.apply(equal(join.leftKeys(), join.rightKeys(), join.condition()));
    Seq left = ordered(join.leftKeys(), equalBits);
    Seq right = ordered(join.rightKeys(), equalBits);
    return new SortMergeJoinExec(
        left, right, join.joinType(), equal, sorted(join.left(), left), sorted(join.right(), right), join.isSkewJoin());
  }

  private static SparkPlan sorted(SparkPlan sort, Seq number) {
    Seq none = PythonUtils.toSeq(new ArrayList());
    Seq order = one(new SortOrder((Expression) number.head(), Ascending$.MODULE$, NullsFirst$.MODULE$, none));
    return new SortExec(order, false, ((SortExec) sort).child(), 0);
  }

  // The upper half has the first bits of the text in which keys differ, and the lower one is a hash. Rows that come
  // nearly in the order of their keys then stay near each other in the sort, which a hash alone would scatter over
  // memory.
  private static Seq ordered(Seq keys, int equalBits) {
    Expression text = (Expression) keys.head();
    if (!text.dataType().equals(DataTypes.StringType)) {
      return hash(keys);
    }
    int cut = equalBits / 8 < LEAST_CUT ? 0 : equalBits / 8;
    Expression part = cut == 0 ? text : new Substring(text, literal(cut + 1), literal(BYTES));
    Seq none = PythonUtils.toSeq(new ArrayList());
    Expression begin = new Invoke(part, "getPrefix", DataTypes.LongType, none, none, true, false, true);
    Expression upper = new BitwiseAnd(new ShiftLeft(begin, literal(equalBits - 8 * cut)), literal(0xFFFFFFFF00000000L));
    return orNull(keys, new BitwiseOr(upper, new BitwiseAnd(new XxHash64(keys), literal(0xFFFFFFFFL))));
  }

  private static Expression literal(int value) {
    return Literal.create(Integer.valueOf(value), DataTypes.IntegerType);
  }

  private static Expression literal(long value) {
    return Literal.create(Long.valueOf(value), DataTypes.LongType);
  }

  private static boolean isNumber(Seq keys) {
    Seq packed = HashJoin$.MODULE$.rewriteKeyExpr(keys);
    return packed.size() == 1 && ((Expression) packed.head()).dataType().equals(DataTypes.LongType);
  }

  private static Seq hash(Seq keys) {
    return orNull(keys, new XxHash64(keys));
  }

  // The number, or null if a key is null, because a null equals no other one.
  private static Seq orNull(Seq keys, Expression number) {
    Expression found = number;
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
