from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.dataplane import key_job
from jobs.dataplane.key_digest import KeyDigest
from jobs.format.bucket_hash import string_hash_codes
from jobs.format.meta_columns import RECORD_KEY
from jobs.job_context import JobContext
from jobs.storage.paths import Storage

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_SPARK = cast("Any", None)


def test_the_keys_of_small_files_are_read_without_spark_however_large_their_filters_are(tmp_path: Path) -> None:
    keys = [pa.array([f"k{number}-{row}" for row in range(100)]) for number in range(3)]
    paths = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for path, column in zip(paths, keys, strict=True):
        pq.write_table(pa.table({RECORD_KEY: column}), path)
    context = JobContext("job/1", on_instant=lambda: None)
    found = key_job.digests(WITHOUT_SPARK, Storage(str(tmp_path)), paths, [40 << 20] * 3, context)
    assert found == [KeyDigest.of_codes(string_hash_codes(each)) for each in keys]
