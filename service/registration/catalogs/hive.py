"""Lists the tables of a Hive metastore through Thrift (extra `hive`), without a JVM.

Three calls of `hive_metastore.thrift` (Hive 2.3 and later) are enough. So structs are read generically, by field ids,
without the 60 000 lines of code that Thrift would generate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.format.server_addresses import metastores
from service.registration.catalogs import errors
from service.registration.catalogs.catalog import Broken, Entry, Source, qualified, tables_of, true_location

_CONNECT_SECONDS, _SILENCE_SECONDS = 3.0, 20.0
# The number of tables of one request. The metastore reads all parts of each table from its database.
_PAGE = 200
_MOST_TEXT, _MOST_MEMBERS, _MOST_DEPTH = 4 * 1024 * 1024, 1_000_000, 16
# Field ids of `Table`, `StorageDescriptor` and `SerDeInfo`.
_NAME, _OWNER, _STORAGE, _PARAMETERS = 1, 3, 7, 9
_LOCATION, _INPUT_FORMAT, _SERDE = 2, 3, 7
_SERDE_PARAMETERS = 3
_VERSION, _VERSION_MASK = 0x80010000, 0xFFFF0000
# Other servers answer with these first bytes: the error of `TSaslServerTransport` (status ERROR or BAD, then a length),
# an alert of TLS, and an answer of HTTP.
_OTHERS = {
    b"\x04\0": "a login by SASL, such as Kerberos",
    b"\x03\0": "a login by SASL, such as Kerberos",
    b"\x15\x03": "TLS",
    b"HT": "Thrift in HTTP",
}


def entries(source: Source) -> Iterator[Entry | Broken | None]:
    """Lists all wanted databases. Yields None after each answer. Raises the errors of catalogs."""
    metastore = _Metastore(source.address)
    try:
        for database in filter(source.wants_database, metastore.call("get_all_databases")):
            yield from tables_of(database, _pages(metastore, source, database), _entry)
    finally:
        metastore.close()


def _pages(metastore: _Metastore, source: Source, database: str) -> Iterator[list[dict[int, Any]]]:
    """Yields the tables of a database in pages. The first page, which follows the answer with the names, is empty."""
    names = [each for each in metastore.call("get_all_tables", database) if source.wants(qualified(database, each))]
    yield []
    for first in range(0, len(names), _PAGE):
        yield metastore.call("get_table_objects_by_name", database, names[first : first + _PAGE])


def _entry(database: str, table: dict[int, Any]) -> Entry:
    storage = table.get(_STORAGE) or {}
    return Entry(
        name=qualified(database, str(table.get(_NAME))),
        location=true_location(storage.get(_LOCATION), (storage.get(_SERDE) or {}).get(_SERDE_PARAMETERS)),
        owner=table.get(_OWNER),
        input_format=storage.get(_INPUT_FORMAT) or "",
        parameters=table.get(_PARAMETERS) or {},
    )


class _Metastore:
    """A connection to the first metastore of the address that answers."""

    def __init__(self, address: str) -> None:
        self._was_heard = False
        try:
            from thrift.protocol.TBinaryProtocol import TBinaryProtocol
            from thrift.transport import TSocket, TTransport
        except ImportError as error:
            raise errors.CatalogClientError(str(error)) from error
        failures = []
        for host, port in metastores(address):
            socket = TSocket.TSocket(host, port)
            socket.setTimeout(_CONNECT_SECONDS * 1000)
            try:
                socket.open()
            except TTransport.TTransportException as error:
                failures.append(str(error))
                continue
            socket.setTimeout(_SILENCE_SECONDS * 1000)
            self._transport = TTransport.TBufferedTransport(socket)
            self._protocol = TBinaryProtocol(
                self._transport, string_length_limit=_MOST_TEXT, container_length_limit=_MOST_MEMBERS
            )
            return
        raise errors.CatalogUnavailableError("; ".join(failures)[:600])

    def close(self) -> None:
        self._transport.close()

    def call(self, name: str, *arguments: str | list[str]) -> Any:
        """Returns the result of a call. A struct becomes a dictionary with field ids as keys."""
        from thrift.protocol.TProtocol import TProtocolException
        from thrift.Thrift import TApplicationException, TMessageType
        from thrift.transport.TTransport import TTransportException

        try:
            self._send(name, arguments)
            kind = self._begun(name)
            if kind == TMessageType.EXCEPTION:
                refused = TApplicationException()
                refused.read(self._protocol)
                raise errors.CatalogError(f"{name}: {refused}"[:600])
            answer = self._struct(0)
            self._protocol.readMessageEnd()
        except TTransportException as error:
            # Some servers that want a login or TLS close the connection without an answer.
            unheard = "" if self._was_heard else ". The service cannot log in to a metastore by Kerberos, nor use TLS"
            raise errors.CatalogUnavailableError(f"{name}: {error}"[:400] + unheard) from error
        except (TProtocolException, EOFError, ValueError) as error:
            raise errors.CatalogError(f"{name}: the answer does not come from a metastore: {error}"[:600]) from error
        if 0 in answer:
            return answer[0]
        # Field 0 is the result; the others are the exceptions that the call declares, each with its message first.
        said: Any = next(iter(answer.values()), {})
        detail = f"{name}: {said.get(1) if isinstance(said, dict) else said}"[:600]
        is_denied = any(each in detail for each in ("Permission denied", "AccessControl", "not authorized"))
        raise (errors.CatalogDeniedError if is_denied else errors.CatalogError)(detail)

    def _begun(self, name: str) -> int:
        """Reads the head of an answer and returns the type of the message. If the server wants a login, TLS or HTTP,
        the error names this."""
        head = self._transport.readAll(4)
        version = int.from_bytes(head)
        if version & _VERSION_MASK != _VERSION:
            if wants := _OTHERS.get(head[:2]):
                raise errors.CatalogLoginError(f"{name}: The metastore wants {wants}, which the service cannot do.")
            raise ValueError(f"it begins with {head!r}")
        self._was_heard = True
        self._protocol.readString()
        self._protocol.readI32()
        return version & 0xFF

    def _send(self, name: str, arguments: tuple[str | list[str], ...]) -> None:
        from thrift.Thrift import TMessageType, TType

        out = self._protocol
        out.writeMessageBegin(name, TMessageType.CALL, 0)
        for number, value in enumerate(arguments, 1):
            if isinstance(value, str):
                out.writeFieldBegin("", TType.STRING, number)
                out.writeString(value)
            else:
                out.writeFieldBegin("", TType.LIST, number)
                out.writeListBegin(TType.STRING, len(value))
                for each in value:
                    out.writeString(each)
        out.writeFieldStop()
        out.writeMessageEnd()
        self._transport.flush()

    def _struct(self, depth: int) -> dict[int, Any]:
        from thrift.Thrift import TType

        if depth > _MOST_DEPTH:
            raise ValueError("it is nested too deeply")
        found: dict[int, Any] = {}
        while True:
            _, kind, number = self._protocol.readFieldBegin()
            if kind == TType.STOP:
                return found
            found[number] = self._value(kind, depth + 1)

    def _value(self, kind: int, depth: int) -> Any:
        from thrift.Thrift import TType

        read = self._protocol
        if kind == TType.STRUCT:
            return self._struct(depth)
        if kind == TType.STRING:
            return read.readBinary().decode(errors="replace")
        if kind == TType.MAP:
            of_keys, of_values, size = read.readMapBegin()
            return {self._value(of_keys, depth): self._value(of_values, depth) for _ in range(size)}
        if kind in (TType.LIST, TType.SET):
            of_members, size = read.readListBegin()
            return [self._value(of_members, depth) for _ in range(size)]
        simple = {
            TType.BOOL: read.readBool,
            TType.BYTE: read.readByte,
            TType.DOUBLE: read.readDouble,
            TType.I16: read.readI16,
            TType.I32: read.readI32,
            TType.I64: read.readI64,
        }
        if kind not in simple:
            raise ValueError(f"type {kind}")
        return simple[kind]()
