package org.apache.hudi.aws.transaction.lock;

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.CreateDynamoDBTableOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import java.io.IOException;
import java.net.URI;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.exception.HoodieLockException;
import org.apache.hudi.storage.StorageConfiguration;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClientBuilder;
import software.amazon.awssdk.services.dynamodb.model.ProvisionedThroughput;

/**
 * Replaces the class of this name in hudi-aws 1.2.0. Amazon's own client of locks does all the work here as well, with
 * the same lease and heartbeats from the same options, and the same failures.
 */
public class DynamoDBBasedLockProvider implements LockProvider {
  private static final String OWN = "hoodie.write.lock.dynamodb.";
  private final AmazonDynamoDBLockClient client;
  private final String key;
  private volatile LockItem item;

  public DynamoDBBasedLockProvider(LockConfiguration configuration, StorageConfiguration storage) {
    Properties options = configuration.getConfig();
    this.key = options.getProperty(OWN + "partition_key");
    String wait = options.getProperty("hoodie.write.lock.wait_time_ms", "60000");
    long lease = Long.parseLong(wait);
    String user = options.getProperty("hoodie.aws.access.key");
    AwsBasicCredentials credentials = AwsBasicCredentials.create(user, options.getProperty("hoodie.aws.secret.key"));
    DynamoDbClientBuilder builder = DynamoDbClient.builder();
    builder.endpointOverride(URI.create(options.getProperty(OWN + "endpoint_url")));
    builder.region(Region.of(options.getProperty(OWN + "region")));
    builder.credentialsProvider(StaticCredentialsProvider.create(credentials));
    DynamoDbClient dynamodb = (DynamoDbClient) builder.build();
    String table = options.getProperty(OWN + "table");
    AmazonDynamoDBLockClientOptions.AmazonDynamoDBLockClientOptionsBuilder locks =
        AmazonDynamoDBLockClientOptions.builder(dynamodb, table);
    locks.withTimeUnit(TimeUnit.MILLISECONDS).withLeaseDuration(Long.valueOf(lease));
    locks.withHeartbeatPeriod(Long.valueOf(lease / 3)).withCreateHeartbeatBackgroundThread(Boolean.TRUE);
    this.client = new AmazonDynamoDBLockClient(locks.build());
    if (!this.client.lockTableExists()) {
      ProvisionedThroughput throughput =
          (ProvisionedThroughput) ProvisionedThroughput.builder().readCapacityUnits(Long.valueOf(20)).writeCapacityUnits(Long.valueOf(10)).build();
      AmazonDynamoDBLockClient.createLockTableInDynamoDB(
          CreateDynamoDBTableOptions.builder(dynamodb, throughput, table).build());
    }
  }

  public boolean tryLock(long time, TimeUnit unit) {
    try {
      AcquireLockOptions.AcquireLockOptionsBuilder wanted = AcquireLockOptions.builder(this.key);
      wanted.withAdditionalTimeToWaitForLock(Long.valueOf(time)).withTimeUnit(TimeUnit.MILLISECONDS);
      this.item = this.client.acquireLock(wanted.build());
    } catch (InterruptedException error) {
      throw new HoodieLockException("FAILED_TO_ACQUIRE", error);
    } catch (LockNotGrantedException error) {
      return false;
    }
    return this.item != null && !this.item.isExpired();
  }

  public void unlock() {
    try {
      if (this.item != null) {
        this.client.releaseLock(this.item);
        this.item = null;
      }
    } catch (RuntimeException error) {
      throw new HoodieLockException("FAILED_TO_RELEASE", error);
    }
  }

  public void close() {
    try {
      if (this.item != null) {
        this.client.releaseLock(this.item);
        this.item = null;
      }
    } catch (RuntimeException error) {
      // The lock ends with its lease.
    } finally {
      try {
        this.client.close();
      } catch (IOException error) {
        throw new HoodieLockException("FAILED_TO_RELEASE", error);
      }
    }
  }

  public Object getLock() {
    return this.item;
  }
}
