"""Operations for the writers of tables: the commit callback, and the options that writers need."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Header, Query, Request
from pydantic import BaseModel, Field, StringConstraints

from jobs.contract import BucketIndex, WriterEngine
from jobs.kinds.words import NO_NUL
from service.access import token_store
from service.api.dependencies import CALLBACK_PATH, DatabaseDep, Exposure, ExposureDep, LakeDep, caller_of
from service.api.observed import CallbackOut, WriterOptionsOut
from service.api.query_parameters import TOLERANT
from service.api.requests import HUDI_VERSION, LOCK_PROVIDER, Word
from service.api.routes import Routes
from service.api.statuses import ACCEPTED
from service.api.structs import made
from service.api.tables import TableId
from service.catalog import snapshot_store, table_store, watch_store
from service.catalog.table_secrets import masked
from service.db.engine import reading
from service.events.database import Database
from service.lake.table import TableType
from service.model import errors, table_errors
from service.observation import callback as callbacks
from service.writer_options.known_options import LATEST
from service.writer_options.options import writer_options
from service.writer_options.written_table import Callback, Target

router = Routes(prefix="/v1", tags=["writers"])

HudiVersionQuery = Annotated[
    str | None,
    Query(
        description="Only options that this version of Hudi knows, under its names. Default: the declared version of"
        " the table's writers, or 1.2.0",
        max_length=64,
        pattern=HUDI_VERSION,
        examples=["0.15.0"],
    ),
]
ServicesQuery = Annotated[
    Literal["none", "delegated"],
    Query(description="`delegated`: the writer plans compactions, and delegates them by Hudi's own protocol"),
]
WriterEngineQuery = Annotated[WriterEngine, Query(description="The writer's engine")]
_FILL_IN = "<a token of this service>"
_KEY_PLACEHOLDER = "<the value of GROUNDSKEEPER_CALLBACK_KEY>"


_MESSAGE = {"commitTime": "20260101120000000", "tableName": "orders", "basePath": "s3a://lake/orders"}


class CallbackIn(BaseModel, extra="ignore", json_schema_extra={"examples": [_MESSAGE]}):
    """Hudi's `HoodieWriteCommitCallbackMessage`, 0.6 to 1.2. Other members differ between versions and are ignored."""

    instant: Word = Field(
        alias="commitTime", description="Requested time of the commit", examples=["20260101120000000"]
    )
    base_path: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=NO_NUL)] = Field(
        alias="basePath", description="Base path of the table", examples=["s3a://lake/orders"]
    )


@router.on(
    f"POST {CALLBACK_PATH.removeprefix(router.prefix)}",
    "Report a writer's commit",
    table_errors.CallbackUnknownTableError,
    openapi_extra=TOLERANT,
    status_code=ACCEPTED,
    dependencies=[Depends(caller_of)],
)
def hudi_callback(
    wanted: CallbackIn,
    database: DatabaseDep,
    lake: LakeDep,
    _documented: Annotated[
        str | None, Header(alias="hudi-callback-key", description="Required if the service has a callback key")
    ] = None,
) -> CallbackOut:
    """Accepts the HTTP commit callback of Hudi and requests a poll of the table, without waiting for the poll."""
    received = callbacks.receive(
        database.engine, lake.poll_requests, base_path=wanted.base_path, instant=wanted.instant
    )
    return CallbackOut(table_id=received.table_id, is_new=received.is_new)


@router.reader("GET /tables/{table_id}/writer-options", "Show the options that a writer of a table needs")
def get_writer_options(
    table_id: TableId,
    database: DatabaseDep,
    exposure: ExposureDep,
    request: Request,
    *,
    engine: WriterEngineQuery = WriterEngine.SPARK,
    services: ServicesQuery = "none",
    hudi_version: HudiVersionQuery = None,
) -> WriterOptionsOut:
    """Returns the options for writing beside this service: concurrency control with the table's own lock, the callback,
    no inline services, the bucket index. The options have the engine's own names; for Flink and Spark SQL the answer
    has SQL too."""
    with reading(database.engine) as connection:
        table = table_store.get(connection, table_id)
        stored = snapshot_store.find(connection, table_id)
        sightings = watch_store.engines_of(connection, table_id)
    registered = table.index.num_buckets if table.index else 0
    target = Target.of(
        table,
        lock_options=masked(table.lock.options),
        num_buckets=(stored.snapshot.num_buckets if stored else 0) or registered,
        has_flink=WriterEngine.FLINK in table.writers.known_engines(sightings),
        hudi_version=hudi_version,
    )
    return _shown(target, engine, database, exposure, request, delegates=services == "delegated")


@router.reader("GET /writer-options", "Show the options for a table that does not exist yet")
def get_writer_options_of_new_table(
    database: DatabaseDep,
    exposure: ExposureDep,
    request: Request,
    *,
    engine: WriterEngineQuery,
    base_path: Annotated[str, Query(min_length=1, max_length=4096, pattern=NO_NUL, examples=["s3a://lake/orders"])],
    table_name: Annotated[str | None, Query(max_length=1024, pattern=NO_NUL)] = None,
    table_type: TableType = TableType.MERGE_ON_READ,
    record_key: Annotated[str | None, Query(description="Columns, separated by commas", pattern=NO_NUL)] = None,
    partition_by: Annotated[str | None, Query(description="Columns, separated by commas", pattern=NO_NUL)] = None,
    ordering_fields: Annotated[str | None, Query(description="Columns, separated by commas", pattern=NO_NUL)] = None,
    num_buckets: Annotated[int | None, Query(ge=1, le=1_000_000, description="For a bucket index")] = None,
    hash_fields: Annotated[str | None, Query(description="Default: the record key", pattern=NO_NUL)] = None,
    lock_provider: Annotated[str, Query(max_length=1024, pattern=LOCK_PROVIDER)] = "filesystem",
    services: ServicesQuery = "none",
    hudi_version: HudiVersionQuery = None,
) -> WriterOptionsOut:
    """Returns the same as for a registered table, and in addition the options that the first write fixes for good. Does
    not read storage."""
    keys = _columns(record_key)
    hashed = _columns(hash_fields) or keys
    if num_buckets and not hashed:
        raise errors.ParamsInvalidError.of("hash_fields", "must be given, because record_key is not given either")
    target = Target(
        base_path=base_path,
        name=table_name or base_path.rstrip("/").rpartition("/")[2],
        table_type=table_type,
        record_key_fields=keys,
        ordering_fields=_columns(ordering_fields),
        partition_fields=_columns(partition_by),
        index=BucketIndex(num_buckets, hashed) if num_buckets else None,
        num_buckets=num_buckets or 0,
        lock_provider=lock_provider,
        hudi_version=hudi_version or LATEST,
        exists=False,
    )
    return _shown(target, engine, database, exposure, request, delegates=services == "delegated")


def _columns(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _shown(
    target: Target, engine: WriterEngine, database: Database, exposure: Exposure, request: Request, *, delegates: bool
) -> WriterOptionsOut:
    with reading(database.engine) as connection:
        needs_token = exposure.callback_key is None and token_store.exist(connection)
    url = exposure.url_for(request)
    callback = Callback(
        url=url + CALLBACK_PATH,
        key=_KEY_PLACEHOLDER if exposure.callback_key else None,
        headers=f"Authorization:Bearer {_FILL_IN}" if needs_token else None,
    )
    secret = callback.key or (_FILL_IN if needs_token else None)
    # The token is in the URL, because Hudi's HTTP client takes credentials only from there.
    delegation_url = url.replace("://", f"://writer:{secret}@", 1) if secret else url
    found = writer_options(target, engine, callback=callback, manager=delegation_url if delegates else "")
    return made(WriterOptionsOut, found, engine=engine)
