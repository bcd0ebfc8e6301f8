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
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import scala.collection.Seq;

class RowConditions {
  private static final long UNSIGNED = 0xFFFFFFFFL;

  // Returns the rows. A row outside of the bucket of its task raises an error.
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
    Column isAscii = null;
    Column code = functions.lit(Long.valueOf(1));
    long empty = 1;
    for (Iterator each = fields.iterator(); each.hasNext();) {
      String name = (String) each.next();
      Column field = functions.col(name).cast("string");
      Column text = functions.coalesce(new Column[] {field, functions.lit("")});
      texts.add(text.expr());
      if (rows.schema().apply(name).dataType().equals(DataTypes.StringType)) {
        Column isShort = functions.length(text).equalTo(functions.octet_length(text));
        isAscii = isAscii == null ? isShort : isAscii.and(isShort);
      }
      // The sums stay 32-bit numbers, as in Java.
      Column product = code.multiply(Long.valueOf(31));
      code = product.plus(ofText(text).cast("bigint")).bitwiseAND(Long.valueOf(UNSIGNED));
      empty = (empty * 31) & UNSIGNED;
    }
    // Hive's hash of bytes is Java's hash of the text if each byte is a letter. No text is made then.
    Column ofBytes = new Column(new HiveHash(PythonUtils.toSeq(texts)));
    Column quick = ofBytes.cast("bigint").plus(Long.valueOf(empty));
    Column any = isAscii == null ? quick : new Column(new If(isAscii.expr(), quick.expr(), code.expr()));
    return any.bitwiseAND(Long.valueOf(0x7FFFFFFFL));
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
