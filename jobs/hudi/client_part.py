"""The base of the parts of Hudi's write client."""

from __future__ import annotations

from typing import Any, ClassVar

from jobs.hudi.table import HudiTable


class ClientPart:
    """A part of a `WriteClient`: one kind of work on its table, with the client's `HoodieWriteConfig`. A part that
    needs the `SparkRDDWriteClient` gets it as well (`needs_client`)."""

    needs_client: ClassVar[bool] = True

    def __init__(self, table: HudiTable, config: Any, client: Any = None) -> None:
        self._table = table
        self._jvm = table.jvm
        self._config = config
        self._client = client


def present_schema(table: HudiTable, client: Any) -> str:
    """Puts the table's current schema into the next commit of Hudi's client, which has the schema of the moment when it
    was opened. That older schema would remove columns that were added meanwhile (Spark SQL's `ALTER TABLE` needs no
    lock), and writers of these columns would fail. Hudi takes the schema of the configuration even if the extra
    metadata has another one (`CommitUtils.buildMetadata`)."""
    table.reload()
    schema = table.schema()
    client.getConfig().setSchema(schema)
    return schema
