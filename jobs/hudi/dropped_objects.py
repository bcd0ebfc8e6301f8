"""Releases Java objects that Python no longer uses, many in one call of the JVM. py4j keeps each object that a call
returns in a map until Python has dropped it, and then makes one call for each object. Two of five calls of a job on a
small table are for that purpose."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from py4j.clientserver import JavaClient
from py4j.protocol import ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID, Py4JError

from jobs.hudi.jvm import Jvm, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


logger = logging.getLogger(__name__)

_KEPT = (ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID)


def remove_together(session: SparkSession) -> None:
    """Makes py4j's own thread, which runs once a second, release all dropped objects in one call."""
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
