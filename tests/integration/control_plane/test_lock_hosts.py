"""The service connects to a lock's server at registration, on hosts that the operator names and on no other."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from service.api.app import create_app
from tests.support.contexts import changed

if TYPE_CHECKING:
    from service.api.dependencies import AppContext

HIVE = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"


def zookeeper(address: str) -> dict[str, Any]:
    return {"provider": "zookeeper", "options": {"hoodie.write.lock.zookeeper.url": address}}


def metastore(address: str) -> dict[str, Any]:
    return {"provider": HIVE, "options": {"hoodie.write.lock.hivemetastore.uris": f"thrift://{address}"}}


@pytest.mark.parametrize("lock", [zookeeper, metastore])
def test_a_lock_without_a_server_is_refused(app_context: AppContext, lock: Any) -> None:
    app = create_app(changed(app_context, lock_hosts=("127.0.0.1",)))
    with TestClient(app, base_url="http://127.0.0.1") as client, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        table = client.post("/v1/tables", json={"base_path": "/lake/a"})
        for answer in (
            client.post("/v1/tables", json={"base_path": "/lake/b", "lock": lock(address)}),
            client.patch(f"/v1/tables/{table.json()['id']}", json={"lock": lock(address)}),
        ):
            assert (answer.status_code, answer.json()["type"]) == (422, "/problems/lock-unavailable")
            assert answer.json()["detail"] == f"{address}: Connection refused."
        closed.listen()
        answer = client.post("/v1/tables", json={"base_path": "/lake/b", "lock": lock(address)})
        assert answer.status_code == 201


def test_one_server_of_several_is_enough(app_context: AppContext) -> None:
    app = create_app(changed(app_context, lock_hosts=("127.0.0.1", "unknown.invalid")))
    with TestClient(app, base_url="http://127.0.0.1") as client, socket.create_server(("127.0.0.1", 0)) as open_one:
        url = f"127.0.0.1:1,unknown.invalid:2181,127.0.0.1:{open_one.getsockname()[1]}/chroot"
        assert client.post("/v1/tables", json={"base_path": "/lake/a", "lock": zookeeper(url)}).status_code == 201


@pytest.mark.parametrize("hosts", [(), ("127.0.0.1:1",), ("zk",)])
def test_a_registration_does_not_reveal_which_ports_are_open(app_context: AppContext, hosts: tuple[str]) -> None:
    app = create_app(changed(app_context, lock_hosts=hosts))
    with TestClient(app, base_url="http://127.0.0.1") as client, socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        for address in (f"127.0.0.1:{listening.getsockname()[1]}", "127.0.0.1:2"):
            lock = zookeeper(f"127.0.0.1:1,{address}")
            assert client.post("/v1/tables", json={"base_path": f"/{address}", "lock": lock}).status_code == 201
        with pytest.raises(TimeoutError):
            listening.accept()
