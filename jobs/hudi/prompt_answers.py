"""Makes the JVM send long answers at once. An answer above the buffer of py4j's server (0.10.9, 8 KB) is sent in two
parts. Without TCP_NODELAY the second part waits for 40 ms until Python's side confirms the first one. An expansion of a
small table then takes a tenth longer for each such answer, for example the one with the table's commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.hudi import janino
from jobs.hudi.jvm import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCE = """
package groundskeeper;

import java.lang.reflect.Field;
import java.net.SocketException;
import java.util.Iterator;
import java.util.List;
import py4j.DefaultGatewayServerListener;
import py4j.GatewayServer;
import py4j.Py4JServerConnection;

public class PromptAnswers extends DefaultGatewayServerListener {
  public PromptAnswers(GatewayServer server) throws Exception {
    server.addListener(this);
    Field connections = GatewayServer.class.getDeclaredField("connections");
    connections.setAccessible(true);
    for (Iterator each = ((List) connections.get(server)).iterator(); each.hasNext();) {
      connectionStarted((Py4JServerConnection) each.next());
    }
  }

  public void connectionStarted(Py4JServerConnection connection) {
    try {
      connection.getSocket().setTcpNoDelay(true);
    } catch (SocketException e) {
      // The connection is closed already; a slow one works as well.
    }
  }
}
"""


def send_at_once(session: SparkSession) -> None:
    """Sets TCP_NODELAY for all connections of this session's gateway, also for later ones: each thread has its own."""
    gateway: Any = session.sparkContext._gateway
    if "groundskeeper_is_prompt" not in vars(gateway):
        jvm = jvm_of(session)
        server = gateway.java_gateway_server
        janino.instance(jvm, _SOURCE, "groundskeeper.PromptAnswers", server, beside=jvm.java.py4j.GatewayServer)
        gateway.groundskeeper_is_prompt = True
