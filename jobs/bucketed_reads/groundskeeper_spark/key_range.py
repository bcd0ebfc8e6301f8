"""The range of the keys of files, and the common prefix of all texts in this range: a Java class."""

SOURCE = """
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;

class KeyRange {
  private byte[] least;
  private byte[] greatest;

  // The range of the keys of all files. Each sample is a file with the name of its key. A file that tells no range,
  // such as a log file, is left out: only the speed of a join depends on the answer.
  static KeyRange of(List samples, Configuration conf) {
    KeyRange found = new KeyRange();
    for (int at = 0; at < samples.size(); at++) {
      Object[] sample = (Object[]) samples.get(at);
      found.read((Path) sample[0], (String) sample[1], conf);
    }
    return found;
  }

  private void read(Path file, String key, Configuration conf) {
    try {
      ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, conf));
      try {
        List groups = reader.getFooter().getBlocks();
        for (int group = 0; group < groups.size(); group++) {
          List columns = ((BlockMetaData) groups.get(group)).getColumns();
          for (int at = 0; at < columns.size(); at++) {
            ColumnChunkMetaData column = (ColumnChunkMetaData) columns.get(at);
            if (column.getPath().toDotString().equals(key)) {
              add(column.getStatistics());
            }
          }
        }
      } finally {
        reader.close();
      }
    } catch (Exception unreadable) {
      return;
    }
  }

  private void add(Statistics found) {
    if (found == null || !found.hasNonNullValue()) {
      return;
    }
    byte[] from = found.getMinBytes();
    byte[] to = found.getMaxBytes();
    least = least == null || Arrays.compareUnsigned(from, least) < 0 ? from : least;
    greatest = greatest == null || Arrays.compareUnsigned(to, greatest) > 0 ? to : greatest;
  }

  // The number of bits with which all keys of the range begin.
  int equalBits() {
    if (least == null) {
      return 0;
    }
    int at = 0;
    while (at < least.length && at < greatest.length && least[at] == greatest[at]) {
      at++;
    }
    boolean areMore = at < least.length && at < greatest.length;
    return 8 * at + (areMore ? Integer.numberOfLeadingZeros((least[at] ^ greatest[at]) & 0xFF) - 24 : 0);
  }
}
"""
