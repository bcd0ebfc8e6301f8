"""Conditions of rows as expressions of generated code, such as that each is in the bucket of its task: a Java class."""

SOURCE = """
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hudi.common.util.StringUtils;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.HiveHash;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.unsafe.Platform;
import scala.collection.Seq;

class RowConditions {
  private static final long UNSIGNED = 0xFFFFFFFFL;

  // The rows, of which one outside of the bucket of its task raises an error.
  static Dataset checked(Dataset rows, List fields, int modulus, String wrong) {
    boolean isPowerOfTwo = (modulus & (modulus - 1)) == 0;
    Column code = hash(rows, fields);
    Column bucket = isPowerOfTwo
        ? code.bitwiseAND(Long.valueOf(modulus - 1)) : functions.pmod(code, functions.lit(Long.valueOf(modulus)));
    Column isThere = bucket.equalTo(functions.spark_partition_id());
    Column refused = functions.raise_error(functions.lit(wrong)).cast("boolean");
    return rows.where(functions.when(isThere, Boolean.TRUE).otherwise(refused));
  }

  // The rows whose fields have the values of one of the keys, which are texts and whole numbers.
  static Dataset wanted(Dataset rows, List names, List values) {
    Object[] found = new Object[values.size()];
    for (int at = 0; at < found.length; at++) {
      List key = (List) values.get(at);
      found[at] = names.size() == 1 ? key.get(0) : struct(rows, names, key);
    }
    Column field = names.size() == 1 ? functions.col((String) names.get(0)) : struct(rows, names, null);
    return rows.where(found.length == 0 ? functions.lit(Boolean.FALSE) : field.isin(found));
  }

  // Structs are equal only if their types are, and a wider type loses no value.
  private static Column struct(Dataset rows, List names, List values) {
    Column[] found = new Column[names.size()];
    for (int at = 0; at < found.length; at++) {
      String name = (String) names.get(at);
      boolean isText = rows.schema().apply(name).dataType().equals(DataTypes.StringType);
      Column each = values == null ? functions.col(name) : functions.lit(values.get(at));
      found[at] = each.cast(isText ? "string" : "bigint").alias(name);
    }
    return functions.struct(found);
  }

  // The hash of `BucketIdentifier`: `List.hashCode()` of Java's texts, without its sign.
  static Column hash(Dataset rows, List fields) {
    List texts = new ArrayList();
    Column areAscii = null;
    Column code = functions.lit(Long.valueOf(1));
    long empty = 1;
    for (Iterator each = fields.iterator(); each.hasNext();) {
      String name = (String) each.next();
      Column field = functions.col(name).cast("string");
      Column text = functions.coalesce(new Column[] {field, functions.lit("")});
      texts.add(field.expr());
      if (rows.schema().apply(name).dataType().equals(DataTypes.StringType)) {
        Column isAscii = functions.when(field.isNull(), Boolean.TRUE)
            .otherwise(isAscii(new Column(new KnownNotNull(field.expr()))));
        areAscii = areAscii == null ? isAscii : areAscii.and(isAscii);
      }
      // The sums stay 32-bit numbers, as in Java.
      Column product = code.multiply(Long.valueOf(31));
      code = product.plus(ofText(text).cast("bigint")).bitwiseAND(Long.valueOf(UNSIGNED));
      empty = (empty * 31) & UNSIGNED;
    }
    // Hive's hash of bytes is Java's hash of the text if each byte is a letter. No text is made then. A null has the
    // hash of an empty text.
    Column ofBytes = new Column(new HiveHash(PythonUtils.toSeq(texts)));
    Column quick = ofBytes.cast("bigint").plus(Long.valueOf(empty));
    Column any = areAscii == null ? quick : new Column(new If(areAscii.expr(), quick.expr(), code.expr()));
    return any.bitwiseAND(Long.valueOf(0x7FFFFFFFL));
  }

  // Whether each byte of a text is a letter, and so has no sign. A count of the letters would take one byte after the
  // other, which was a sixth of the time of a join. Few words of eight bytes cover a text of up to 64: half of them
  // from its begin, half of them to its end.
  private static Column isAscii(Column text) {
    Column size = new Column(invoke(text.expr(), "numBytes", DataTypes.IntegerType));
    Column found = functions.length(text).equalTo(size);
    Column begin = new Column(invoke(text.expr(), "getBaseOffset", DataTypes.LongType));
    Column end = begin.plus(size.cast("bigint"));
    for (int words = 8; words > 1; words /= 2) {
      Column all = functions.lit(Long.valueOf(0));
      for (int at = 8; at <= 4 * words; at += 8) {
        Column ofBegin = word(text, begin.plus(Long.valueOf(at - 8)));
        all = all.bitwiseOR(ofBegin).bitwiseOR(word(text, end.minus(Long.valueOf(at))));
      }
      found = functions.when(size.leq(Integer.valueOf(8 * words)), hasNoSign(all)).otherwise(found);
    }
    Column few = new Column(invoke(text.expr(), "getPrefix", DataTypes.LongType));
    return functions.when(size.lt(Integer.valueOf(8)), hasNoSign(few)).otherwise(found);
  }

  private static Column word(Column text, Column place) {
    List where = new ArrayList();
    where.add(invoke(text.expr(), "getBaseObject", new ObjectType(Object.class)));
    where.add(place.expr());
    return new Column(new StaticInvoke(
        Platform.class, DataTypes.LongType, "getLong", PythonUtils.toSeq(where), PythonUtils.toSeq(new ArrayList()),
        false, false, true));
  }

  private static Column hasNoSign(Column bytes) {
    return bytes.bitwiseAND(Long.valueOf(0x8080808080808080L)).equalTo(Long.valueOf(0));
  }

  // `String.hashCode()` in generated code; `java_method` would call it by reflection for each row. The string is made
  // from the bytes where they are, because `UTF8String.toString()` copies them first.
  private static Column ofText(Column column) {
    Expression bytes = column.expr();
    Expression buffer = invoke(bytes, "getByteBuffer", new ObjectType(ByteBuffer.class));
    List place = new ArrayList();
    place.add(invoke(buffer, "array", DataTypes.BinaryType));
    place.add(invoke(buffer, "position", DataTypes.IntegerType));
    place.add(invoke(bytes, "numBytes", DataTypes.IntegerType));
    Seq none = PythonUtils.toSeq(new ArrayList());
    Expression string = new StaticInvoke(
        StringUtils.class, new ObjectType(String.class), "fromUTF8Bytes", PythonUtils.toSeq(place), none,
        true, false, true);
    return new Column(invoke(string, "hashCode", DataTypes.IntegerType));
  }

  private static Expression invoke(Expression of, String name, DataType returned) {
    Seq none = PythonUtils.toSeq(new ArrayList());
    return new Invoke(of, name, returned, none, none, true, false, true);
  }
}
"""
