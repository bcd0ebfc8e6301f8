"""The hook: a client from an Airflow connection."""

from __future__ import annotations

from typing import Any

from groundskeeper_client import AsyncClient, Client, ClientError, calls
from groundskeeper_client.airflow.bases import BaseHook, connection_of
from groundskeeper_client.patience import PatientAsyncClient, PatientClient
from groundskeeper_client.questions import Question, id_of


class GroundskeeperHook(BaseHook):
    """Makes clients from an Airflow connection. The connection's host is the URL of the service, or only a host. For a
    host, the connection also gives the port, and the scheme is `https` unless the connection's schema is `http`. The
    password is a token."""

    conn_name_attr = "conn_id"
    default_conn_name = "groundskeeper_default"
    conn_type = "groundskeeper"
    hook_name = "Groundskeeper"

    def __init__(self, conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.conn_id = conn_id

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        return {
            "hidden_fields": ["login", "extra"],
            "relabeling": {"host": "URL or host", "schema": "http or https", "password": "Token"},
            "placeholders": {"host": "https://groundskeeper.example.com"},
        }

    def get_conn(self, *, patient: bool = False) -> Client:
        """Returns a client, which the caller closes. The calls of a patient client wait for the end of an outage."""
        connection = self.get_connection(self.conn_id)
        return (PatientClient if patient else Client)(_url(connection), connection.password or None)

    async def get_async_conn(self, *, patient: bool = False) -> AsyncClient:
        """Returns the same kind of client as `get_conn`, but for an event loop."""
        connection = await connection_of(self.conn_id)
        return (PatientAsyncClient if patient else AsyncClient)(_url(connection), connection.password or None)

    def table_id(self, table: str) -> str:
        """Returns the id of the table with this id, name or base path. Raises TableUnknownError."""
        with self.get_conn(patient=True) as client:
            return id_of(client, table)

    def asked(self, question: Question) -> dict[str, Any] | None:
        """Returns the answer to a question. Returns None as long as the condition of the question is not met."""
        with self.get_conn(patient=True) as client:
            return question.answer([client.send(call) for call in question.calls()])

    def test_connection(self) -> tuple[bool, str]:
        """Tests the connection, for the button in Airflow's form."""
        try:
            with self.get_conn() as client:
                client.send(calls.list_tables(limit=1))
        except ClientError as error:
            return False, str(error)
        return True, "The service accepts the token."


def _url(connection: Any) -> str:
    host = str(connection.host or "127.0.0.1")
    if "://" in host:
        return host
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.schema or 'https'}://{host}{port}"
