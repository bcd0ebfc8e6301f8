"""Makes the gateway of py4j (0.10.9), by which Python calls the JVM, cost less time."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from py4j.clientserver import JavaClient
from py4j.protocol import ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID, Py4JError

from jobs.hudi import janino
from jobs.hudi.jvm import Jvm, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


logger = logging.getLogger(__name__)

_KEPT = (ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID)
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
    """Makes the JVM send long answers at once: sets TCP_NODELAY for all connections of this session's gateway, also for
    later ones, because each thread has its own.

    An answer above the buffer of py4j's server (8 KB) is sent in two parts. Without TCP_NODELAY the second part waits
    for 40 ms until Python's side confirms the first one. An expansion of a small table then takes a tenth longer for
    each such answer, for example the one with the table's commits.
    """
    gateway: Any = session.sparkContext._gateway
    if "groundskeeper_is_prompt" not in vars(gateway):
        jvm = jvm_of(session)
        server = gateway.java_gateway_server
        janino.instance(jvm, _SOURCE, "groundskeeper.PromptAnswers", server, beside=jvm.java.py4j.GatewayServer)
        gateway.groundskeeper_is_prompt = True


def remove_together(session: SparkSession) -> None:
    """Makes py4j's own thread, which runs once a second, release all objects that Python has dropped in one call.

    py4j keeps each object that a call returns in a map until Python has dropped it, and then makes one call for each
    object. Two of five calls of a job on a small table are for that purpose.
    """
    gateway: Any = session.sparkContext._gateway
    client = gateway._gateway_client
    # Only a gateway with pinned threads has a client with such a thread.
    if isinstance(client, JavaClient) and "garbage_collect_object" not in vars(client):
        client.garbage_collect_object = _DroppedObjects(client, gateway, jvm_of(session)).dropped


class _DroppedObjects:
    """Ids of dropped objects. Python's garbage collector calls `dropped` at any moment in any thread, so no lock may be
    taken here."""

    def __init__(self, client: Any, gateway: Any, jvm: Jvm) -> None:
        self._client, self._jvm = client, jvm
        # A view of py4j's map.
        self._known = gateway.java_gateway_server.getGateway().getBindings().keySet()
        self._ids: deque[str] = deque()
        self._is_asked = False

    def dropped(self, target_id: str, enqueue: bool = True) -> None:
        """Replaces `JavaClient.garbage_collect_object`; py4j's thread calls it without `enqueue`."""
        if not enqueue:
            self._remove()
        elif target_id not in _KEPT:
            self._ids.append(target_id)
            if not self._is_asked:
                self._is_asked = True
                self._client.finalizer_deque.appendleft((self._client, target_id))

    def _remove(self) -> None:
        # The flag is reset before the ids are taken, so that an object dropped in between causes another run.
        self._is_asked = False
        ids = [self._ids.popleft() for _ in range(len(self._ids))]
        if not ids or not self._client.is_connected:
            return
        try:
            self._known.removeAll(self._jvm.list(ids))
        except (Py4JError, OSError):
            logger.debug("%d objects of the JVM could not be removed", len(ids), exc_info=True)
