package org.apache.hudi.aws.transaction.lock;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * Replaces the class of this name in hudi-aws 1.2.0. It makes the same conditional requests and understands the same
 * answers, for a server that checks no signatures.
 *
 * The system property or variable below names the endpoint, as for Amazon's SDK.
 */
public class S3StorageLockClient implements StorageLockClient {
  private static final String UNCHECKED =
      "AWS4-HMAC-SHA256 Credential=someone/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
  private final URL file;
  private final int milliseconds;

  public S3StorageLockClient(String owner, String lockFile, Properties options) throws IOException {
    String endpoint = System.getProperty("aws.endpointUrlS3", System.getenv("AWS_ENDPOINT_URL_S3"));
    this.file = new URL(endpoint + lockFile.substring(lockFile.indexOf("://") + 2));
    Object validity = options.get("hoodie.write.lock.storage.validity.timeout.secs");
    this.milliseconds = (validity == null ? 300 : Integer.parseInt(validity.toString())) * 1000 / 5;
  }

  public Pair readCurrentLockFile() {
    try {
      HttpURLConnection connection = this.connection();
      int status = connection.getResponseCode();
      if (status == 200) {
        InputStream content = connection.getInputStream();
        byte[] all = content.readAllBytes();
        content.close();
        Object found = StorageLockFile.createFromStream(new ByteArrayInputStream(all), connection.getHeaderField("ETag"));
        return Pair.of(LockGetResult.SUCCESS, Option.of(found));
      }
      if (status == 404) {
        return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
      }
      if (status == 409 || status == 429 || status >= 500) {
        return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
      }
      throw new IllegalStateException("S3 answers " + status);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  public Pair tryUpsertLockFile(StorageLockData data, Option previous) {
    try {
      HttpURLConnection connection = this.connection();
      connection.setRequestMethod("PUT");
      connection.setDoOutput(true);
      if (previous.isPresent()) {
        connection.setRequestProperty("If-Match", ((StorageLockFile) previous.get()).getVersionId());
      } else {
        connection.setRequestProperty("If-None-Match", "*");
      }
      OutputStream content = connection.getOutputStream();
      content.write(StorageLockFile.toByteArray(data));
      content.close();
      int status = connection.getResponseCode();
      if (status == 200) {
        Object written = new StorageLockFile(data, connection.getHeaderField("ETag"));
        return Pair.of(LockUpsertResult.SUCCESS, Option.of(written));
      }
      Object refused = status == 412 ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR;
      return Pair.of(refused, Option.empty());
    } catch (IOException error) {
      if (previous.isPresent()) {
        return Pair.of(LockUpsertResult.UNKNOWN_ERROR, Option.empty());
      }
      throw new UncheckedIOException(error);
    }
  }

  /** The optional configuration beside the lock is missing. */
  public Option readObject(String path, boolean checkFirst) {
    return Option.empty();
  }

  /** Only an audit of locks, which that configuration switches on, would write an object. */
  public boolean writeObject(String path, String content) {
    return false;
  }

  public void close() {
  }

  private HttpURLConnection connection() throws IOException {
    HttpURLConnection connection = (HttpURLConnection) this.file.openConnection();
    connection.setConnectTimeout(this.milliseconds);
    connection.setReadTimeout(this.milliseconds);
    connection.setRequestProperty("Authorization", UNCHECKED);
    return connection;
  }
}
