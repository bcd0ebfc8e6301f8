package org.apache.spark.network.yarn;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.server.api.ApplicationInitializationContext;
import org.apache.hadoop.yarn.server.api.ApplicationTerminationContext;
import org.apache.hadoop.yarn.server.api.AuxiliaryService;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.shuffle.ExternalBlockHandler;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;

/**
 * Replaces the class of this name in the jar {@code spark-*-yarn-shuffle.jar} of Spark's distribution, which is in no
 * repository. Spark's own handler of blocks, which does the work, is the real one. Secrets and a restart of the node
 * manager are left out.
 */
public class YarnShuffleService extends AuxiliaryService {
  private ExternalBlockHandler blocks;
  private TransportServer server;

  public YarnShuffleService() {
    super("spark_shuffle");
  }

  protected void serviceInit(Configuration options) throws Exception {
    TransportConf conf = new TransportConf("shuffle", MapConfigProvider.EMPTY);
    this.blocks = new ExternalBlockHandler(conf, null);
    int port = options.getInt("spark.shuffle.service.port", 7337);
    this.server = new TransportContext(conf, this.blocks, true).createServer(port, new ArrayList());
    super.serviceInit(options);
  }

  protected void serviceStop() {
    this.server.close();
    this.blocks.close();
  }

  public void initializeApplication(ApplicationInitializationContext application) {}

  public void stopApplication(ApplicationTerminationContext application) {
    this.blocks.applicationRemoved(application.getApplicationId().toString(), false);
  }

  public ByteBuffer getMetaData() {
    return ByteBuffer.allocate(0);
  }
}
