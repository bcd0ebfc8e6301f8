"""Reads tables by the input formats that an older Hudi has for Hive, through Hive's own table reader in Spark. A test
starts this program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_READ_SECONDS = 300
_FORMATS = {
    "COPY_ON_WRITE": "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "MERGE_ON_READ": "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
}
_TABLE = """CREATE EXTERNAL TABLE {name} ({columns})
ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'
STORED AS INPUTFORMAT '{format}' OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat'
LOCATION '{base}'"""


def read(version: str, columns: Mapping[str, str], bases: Mapping[Path, str], folder: Path) -> dict[Path, list[str]]:
    """Returns the rows of tables without partitions in the form of `independent.rows_of`. `columns` has all columns
    with their types, `bases` the types of the tables. Hive reads no microseconds."""
    from tests.integration.old_writer import bundle

    asked, found = folder / "asked.json", folder / "found.json"
    texts = {str(base): kind for base, kind in bases.items()}
    asked.write_text(json.dumps({"columns": dict(columns), "bases": texts}))
    command = [sys.executable, "-m", "tests.integration.hive_reader", bundle(version), str(asked), str(found)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_READ_SECONDS, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-4000:]
    return {Path(base): rows for base, rows in json.loads(found.read_text()).items()}


def main(bundle: str, asked: Path, found: Path) -> None:
    from tests.integration.independent import rows_of
    from tests.integration.old_writer import session

    of_hive = {
        "hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "sql.catalogImplementation": "hive",
        "sql.hive.convertMetastoreParquet": "false",
        "sql.warehouse.dir": f"{found}.warehouse",
    }
    spark = session(bundle, **of_hive)
    wanted = json.loads(asked.read_text())
    columns = ", ".join(f"`{name}` {kind}" for name, kind in wanted["columns"].items())
    rows = {}
    for number, (base, kind) in enumerate(wanted["bases"].items()):
        spark.sql(_TABLE.format(name=f"table_{number}", columns=columns, format=_FORMATS[kind], base=base))
        rows[base] = rows_of(spark.table(f"table_{number}"))
    found.write_text(json.dumps(rows))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
