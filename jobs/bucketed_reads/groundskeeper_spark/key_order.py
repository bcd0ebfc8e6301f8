"""A test of whether files are nearly in the order of a key, by what each says about its pages: a Java class."""

SOURCE = """
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.internal.column.columnindex.ColumnIndex;

class KeyOrder {
  // Returns whether all files are nearly in order. Each sample is a file with the name of its key.
  static boolean areNearly(List samples, Configuration conf) {
    boolean found = true;
    for (int at = 0; found && at < samples.size(); at++) {
      Object[] sample = (Object[]) samples.get(at);
      found = isNearly((Path) sample[0], (String) sample[1], conf);
    }
    return found;
  }

  // Whether most pages of the first row group begin after the end of the one before. A file that does not tell, such as
  // a log file or a file with a single page, counts as unordered: only the speed of a join depends on the answer.
  private static boolean isNearly(Path file, String key, Configuration conf) {
    try {
      ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, conf));
      try {
        List columns = ((BlockMetaData) reader.getFooter().getBlocks().get(0)).getColumns();
        for (int at = 0; at < columns.size(); at++) {
          ColumnChunkMetaData column = (ColumnChunkMetaData) columns.get(at);
          if (column.getPath().toDotString().equals(key)) {
            return isNearly(reader.readColumnIndex(column));
          }
        }
        return false;
      } finally {
        reader.close();
      }
    } catch (Exception unreadable) {
      return false;
    }
  }

  private static boolean isNearly(ColumnIndex pages) {
    List least = pages.getMinValues();
    List most = pages.getMaxValues();
    int inOrder = 0;
    for (int at = 1; at < least.size(); at++) {
      byte[] end = bytes((ByteBuffer) most.get(at - 1));
      inOrder += Arrays.compareUnsigned(end, bytes((ByteBuffer) least.get(at))) <= 0 ? 1 : 0;
    }
    return least.size() > 1 && 2 * inOrder >= least.size() - 1;
  }

  private static byte[] bytes(ByteBuffer value) {
    byte[] found = new byte[value.remaining()];
    value.get(found);
    return found;
  }
}
"""
