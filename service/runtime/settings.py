"""All settings. Only this module reads the environment: variables GROUNDSKEEPER_<NAME>."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from jobs.contract import DEFAULT_GROUP, JobKind
from jobs.format import spark_options
from jobs.logs import LogFormat
from jobs.storage.permissions import Permissions, listed
from jobs.web_url import PLACE, filled, is_web_url
from service.model.errors import SettingsError
from service.policies.policy import GROUP_PATTERN
from service.runtime.storage_settings import StorageSettings

# Connections to PostgreSQL: one for notifications of other replicas, and the minimum for everything else. In the
# process for very many tables, decisions and the search for problems each keep one for seconds.
_LISTENING, _LEAST_POOL, FLEET_CONNECTIONS = 1, 4, 6


class Settings(StorageSettings):
    """All settings. The unit of a field is in its description or in its name."""

    model_config = SettingsConfigDict(env_prefix="GROUNDSKEEPER_", extra="ignore", hide_input_in_errors=True)

    database: str = Field("sqlite:///groundskeeper.db", repr=False, description="SQLAlchemy URL: sqlite or postgresql")
    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65_535, description="0 takes any free port")
    workers: int = Field(1, ge=0, le=64, description="Local workers that `serve` starts")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: LogFormat = Field(LogFormat.TEXT, description="`json`: one object a line, also of the workers")
    open_metrics: bool = Field(False, description="Whether /metrics can be read without a token even if tokens exist")
    metrics_tables: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Tables with separate metrics: patterns of names, owners and tags, separated by commas"
    )
    metrics_most_tables: int = Field(100, ge=1, le=1000, description="Largest number of tables with separate metrics")
    max_request_bytes: int = Field(8 * 1024 * 1024, ge=1024)
    max_connections: int = Field(2000, ge=16, description="Open connections; the limit of open files may allow fewer")
    max_connections_per_address: int = Field(500, ge=1, description="Trusted proxies do not count as an address")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Addresses and networks whose `X-Forwarded-*` and `Host` headers are believed, with commas"
    )

    allowed_roots: Annotated[tuple[str, ...] | None, NoDecode] = Field(
        None, description="Where tables may lie: paths or URI prefixes, separated by commas, or a JSON list"
    )
    lock_roots: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Where the files of filesystem locks may lie, besides below their tables"
    )
    lock_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Hosts of lock servers to which the service connects, to see locks: `host` or `host:port`",
    )
    metastore_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Hosts of metastores to which jobs may sync tables: `host` or `host:port`, with commas"
    )
    allowed_classes: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Classes that tables may name besides Hudi's own, such as lock providers"
    )
    lease_seconds: float = Field(30.0, ge=1, le=3600)
    recover_seconds: float = Field(3.0, gt=0, le=600, description="How often expired leases are collected")
    job_timeout_seconds: float = Field(3600.0, gt=0, description="Time limit of one attempt")
    lock_wait_seconds: float = Field(
        5.0, ge=1, le=86_400, description="How long a job waits in its slot for a table's lock that others hold"
    )
    lock_look_seconds: float = Field(
        2.0, gt=0, le=30, description="How often the service checks the locks that queued jobs wait for"
    )
    lock_break_seconds: float = Field(
        3600.0, ge=300, le=604_800, description="Age from which a lock that does not expire may be broken"
    )
    requested_first: bool = Field(
        True, description="Whether jobs that somebody submitted go before those of policies with the same priority"
    )
    max_attempts: int = Field(3, ge=1, le=100)
    retry_first_seconds: float = Field(2.0, gt=0)
    retry_most_seconds: float = Field(300.0, gt=0)

    poll_seconds: float = Field(60.0, ge=1, le=86_400, description="How often the timeline of each table is polled")
    look_seconds: float = Field(30.0, gt=0, le=3600, description="Time limit of a poll of one table")
    look_threads: int = Field(8, ge=1, le=256, description="Tables that are polled at once")
    database_connections: int = Field(
        24,
        ge=1,
        validate_default=True,
        description="Connections to PostgreSQL: one listens, and each of the simultaneous polls may take one",
    )
    small_file_bytes: int = Field(100 * 1024 * 1024, ge=1, description="Base files below this size count as small")
    commit_days: float = Field(90.0, gt=0, description="How long commits are kept")
    sample_days: float = Field(
        365.0, gt=0, description="How long samples of each table, and figures for reports, are kept"
    )
    price_per_gb_hour: float | None = Field(
        None, ge=0, description="Price of a GiB of a worker's memory for an hour, for the cost in reports"
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s?#]+$",
        description="URL by which writers reach this service. Default: the address at which the request arrives",
    )
    spark_ui_url: str | None = Field(
        None, description="Where Spark's UI shows an application: a URL of a history server with `{application_id}`"
    )
    callback_key: SecretStr | None = Field(
        None, min_length=1, description="Value that writers send as HUDI-CALLBACK-KEY"
    )
    flink_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Hosts of Flink's REST API that may be called to stop jobs: `host` or `host:port`, with commas"
    )
    discover: tuple[dict[str, Any], ...] = Field(
        (), description="JSON list of folders whose tables are registered: objects as for POST /v1/discover"
    )
    catalogs: tuple[Any, ...] = Field(
        (), repr=False, description="JSON list of catalogs in which tables are found: name, kind, address, rules"
    )
    discover_seconds: float = Field(3600.0, ge=1, description="How often these folders are searched for new tables")
    automatic: bool = Field(True, description="Whether this process starts jobs by policies")
    plan_seconds: float = Field(2.0, gt=0, le=3600, description="How often the scheduler decides about due tables")
    max_active_jobs: int = Field(100, ge=1, description="Policies start no job while this many are active")
    max_active_by_group: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict, description="JSON object: the same limit for single worker groups"
    )
    worker_hours_by_group: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict, description="JSON object: hours that jobs of a worker group's tables may take in a day"
    )
    max_active_by_kind: dict[JobKind, Annotated[int, Field(ge=0)]] = Field(
        default_factory=lambda: {JobKind.BUCKET_EXPANSION: 1, JobKind.BUCKET_CONTRACTION: 1},
        description="JSON object: the same limit for single kinds, in each worker group",
    )
    max_new_jobs: int = Field(
        20, ge=1, description="Policies start at most this many jobs in one round, for example after a pause"
    )
    wait_goal_seconds: float = Field(
        300.0,
        ge=0,
        description="Longest time that a job should wait for a slot. The number of slots that a worker group wants"
        " follows from this",
    )
    wait_goal_by_group: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="JSON object: the same goal for single worker groups, in seconds"
    )
    problem_seconds: float = Field(
        30.0, gt=0, le=600, description="How often the service looks for problems that have opened or are resolved"
    )
    history_days: float = Field(30.0, gt=0, description="How long ended jobs and decisions are kept")

    audit_days: float = Field(365.0, gt=0, description="How long entries of the audit trail are kept")

    # [N,F]: N tasks at once, and up to F - 1 retries of a task; plain local[N] has no retry.
    master: str = Field("local[2,4]", description="Spark master of a worker")
    slots: int = Field(1, ge=1, le=64, description="Jobs that a worker runs at once")
    spare_slots: int = Field(
        1, ge=0, le=64, description="Submitted jobs that a worker runs in addition when all its slots are taken"
    )
    worker_group: str = Field(
        DEFAULT_GROUP,
        pattern=GROUP_PATTERN,
        description="A worker gets the jobs of tables whose policy names this group",
    )
    standby_workers: int = Field(
        0, ge=0, le=16, description="Local workers that have started and take over at once when another one ends"
    )
    recycle_jobs: int = Field(200, ge=1, description="A worker is replaced after this many jobs")
    recycle_hours: float = Field(24.0, gt=0, description="A worker is replaced after this many hours")
    drain_seconds: float = Field(
        10.0, ge=0, description="How long running jobs may go on when a worker is asked to end"
    )
    executor_seconds: float = Field(
        120.0, ge=1, description="How long a job waits for the first executor before it goes back to the queue"
    )
    spark_conf: dict[str, str] = Field(
        default_factory=dict, description="JSON object of Spark's options for a worker, such as spark.executor.memory"
    )
    driver_memory: str = Field("2g", pattern=r"^\d+[kmgtKMGT]?$")
    # Read by the tasks themselves (`jobs.format.gzip_level`).
    gzip_level: int = Field(
        2, ge=0, le=3, description="Level of the gzip in new base files: a higher one is slower, with smaller files"
    )
    packages: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="More Maven packages of a worker, separated by commas; `s3a`, `gs`, `abfs`"
    )
    local_maven: bool = Field(False, description="Whether a worker also takes packages from ~/.m2 of its machine")
    jars: Path | None = Field(None, description="Folder with the Hudi bundle, and the jars of `s3a`, for a worker")
    secret_keys: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="Keys for stored secrets, separated by commas; the first one encrypts"
    )
    event_source: str = Field("/groundskeeper", min_length=1, description="`source` of the CloudEvents")
    events_days: float = Field(30.0, gt=0, description="How long events and deliveries are kept")
    webhook_allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Host names, addresses and networks that are not public but may get webhooks, also by http"
    )
    webhook_ca_file: str | None = Field(None, description="PEM file of certificate authorities beside the public ones")
    webhook_schedule_seconds: Annotated[tuple[float, ...], NoDecode] = Field(
        (5, 300, 1800, 7200, 18_000, 36_000, 36_000), description="Pauses between the attempts, separated by commas"
    )
    webhook_hold_seconds: float = Field(
        129_600, gt=0, description="Longest time that a delivery may delay later ones of its table"
    )
    webhook_disable_days: float = Field(5.0, gt=0, description="A webhook without a success for this long is disabled")
    webhook_connect_seconds: float = Field(5.0, gt=0, le=60)
    webhook_timeout_seconds: float = Field(15.0, gt=0, le=120, description="Time limit until the receiver's status")
    webhook_poll_seconds: float = Field(1.0, gt=0, le=60, description="How often due retries are collected")

    openlineage_url: str | None = Field(
        None, repr=False, description="Endpoint for OpenLineage events of all jobs, on a host allowed for webhooks"
    )
    openlineage_api_key: SecretStr | None = Field(None, description="Sent to this endpoint as a bearer token")
    openlineage_namespace: str = Field("groundskeeper", min_length=1, description="Namespace of jobs in these events")

    session_hours: float = Field(12.0, gt=0, le=8760, description="How long a log-in to the dashboard lasts")
    worker_token: SecretStr | None = Field(None, description="Bearer token of a worker, which `serve` accepts")
    reader_token: SecretStr | None = Field(None, description="Bearer token with the role reader that `serve` accepts")
    admin_token: SecretStr | None = Field(None, description="Bearer token with the role admin that `serve` accepts")
    first_token_file: Path | None = Field(None, description="Where `serve` writes an admin token if none exists")

    @field_validator(
        "allowed_roots",
        "allowed_classes",
        "lock_roots",
        "lock_hosts",
        "metastore_hosts",
        "trusted_proxies",
        "packages",
        "secret_keys",
        "webhook_allowed_hosts",
        "flink_hosts",
        "webhook_schedule_seconds",
        "metrics_tables",
        mode="before",
    )
    @classmethod
    def _split(cls, value: Any) -> Any:
        return listed(value) if isinstance(value, str) else value

    @field_validator("jars")
    @classmethod
    def _is_folder(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_dir():
            raise ValueError(f"{value} is no folder")
        return value

    @field_validator("spark_ui_url")
    @classmethod
    def _is_template(cls, value: str | None) -> str | None:
        if value is not None and not (PLACE in value and is_web_url(filled(value, "app-1"))):
            raise ValueError(f"must be an http(s) URL with {PLACE}")
        return value

    @field_validator("spark_conf", mode="before")
    @classmethod
    def _as_text(cls, options: Any) -> Any:
        if not isinstance(options, dict):
            return options
        return {
            name: json.dumps(value) if isinstance(value, bool | int | float) else value
            for name, value in options.items()
        }

    @field_validator("spark_conf")
    @classmethod
    def _are_sparks(cls, options: dict[str, str]) -> dict[str, str]:
        if found := list(spark_options.problems(options)):
            raise ValueError(". ".join(found))
        return options

    @field_validator("database_connections")
    @classmethod
    def _leave_some_for_calls(cls, value: int, info: ValidationInfo) -> int:
        least = _LISTENING + info.data.get("look_threads", 0) + _LEAST_POOL
        if value < least and not info.data.get("database", "").startswith("sqlite"):
            raise ValueError(
                f"must be {least} at least, {_LISTENING + _LEAST_POOL} more than GROUNDSKEEPER_LOOK_THREADS"
            )
        return value

    @field_validator("discover")
    @classmethod
    def _can_be_discovered(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        # The import is made here, because the API takes long to import, and only `serve` needs it.
        if value:
            from service.api.discovery import DiscoverIn

            for each in value:
                DiscoverIn.model_validate({**each, "register": True})
        return value

    @field_validator("catalogs")
    @classmethod
    def _are_catalogs(cls, value: tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        # The import is made here for the same reason.
        if not value:
            return ()
        from service.api.catalog_forms import CatalogIn

        found = tuple(map(CatalogIn.model_validate, value))
        if len({each.name for each in found}) != len(found):
            raise ValueError("two catalogs have the same name")
        for each in found:
            each.check(info.data.get("allowed_roots"), info.data.get("storage_accounts") or ())
        return found

    @property
    def pool_connections(self) -> int:
        """Connections to PostgreSQL that calls and background tasks share."""
        return max(_LEAST_POOL, self.database_connections - _LISTENING - self.look_threads - FLEET_CONNECTIONS)

    @property
    def permissions(self) -> Permissions:
        return Permissions(self.allowed_roots, self.lock_roots, self.allowed_classes, self.metastore_hosts)

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(ipaddress.ip_network(each)) for each in value)


def load(**overrides: Any) -> Settings:
    """Reads the environment; `overrides` that are not None win. Raises SettingsError, naming each wrong setting."""
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        found = [
            f"GROUNDSKEEPER_{_name(each['loc'])}: {each['msg'].removeprefix('Value error, ')}"
            for each in error.errors()
        ]
        raise SettingsError("; ".join(found) + ".") from error
    except ValueError as error:  # pydantic-settings raises this if a value is not JSON.
        raise SettingsError(f"{error}.") from error


def with_spark_conf(chosen: Settings, pairs: Sequence[str]) -> Settings:
    """Returns the settings with these `name=value` options of Spark, which override others. Raises SettingsError."""
    try:
        given = spark_options.parsed(pairs)
        if found := list(spark_options.problems(given)):
            raise ValueError(". ".join(found))
    except ValueError as error:
        raise SettingsError(f"--conf: {error}.") from error
    return chosen.model_copy(update={"spark_conf": {**chosen.spark_conf, **given}})


def _name(location: tuple[str | int, ...]) -> str:
    return "_".join(str(part) for part in location).upper()
