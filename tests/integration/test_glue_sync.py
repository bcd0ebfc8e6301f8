"""A sync to AWS Glue (moto's): the same entries as in a Hive metastore by Hudi's own tool, kept by later syncs, and
refusals by their true names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import MetastoreUnavailableError, RefusedError
from jobs.hudi import glue_client
from jobs.storage_errors import StorageLoginError
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.test_hive_sync import PLAIN, delete_partition, params_into
from tests.support import hive_metastore, s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

DAYS = {f"2026-01-0{day}" for day in (1, 2, 3)}


@pytest.fixture(scope="module")
def server() -> Iterator[s3.Server]:
    with s3.running() as running:
        yield running


@pytest.fixture(autouse=True)
def keys_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the credentials that Amazon's SDK finds in the environment, for tables that are not on S3."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")


def sync_params(server: s3.Server, database: str, **more: Any) -> dict[str, Any]:
    uri = server.endpoint.replace("http://", "glue+http://")
    return {"metastore_uris": uri, "database": database, **more}


def glue(server: s3.Server) -> Any:
    return boto3.client(
        "glue",
        endpoint_url=server.endpoint,
        region_name="eu-central-1",
        aws_access_key_id="someone",
        aws_secret_access_key="anything",
    )


def in_glue(server: s3.Server, database: str, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the entry of a table, and the folders of its partitions below the table."""
    client = glue(server)
    table: dict[str, Any] = client.get_table(DatabaseName=database, Name=name)["Table"]
    root = table["StorageDescriptor"]["Location"]
    listed = client.get_paginator("get_partitions").paginate(DatabaseName=database, TableName=name)
    partitions = {
        "/".join(each["Values"]): each["StorageDescriptor"]["Location"].removeprefix(root).strip("/")
        for page in listed
        for each in page["Partitions"]
    }
    return table, partitions


def columns_of(storage: dict[str, Any]) -> dict[str, str]:
    return {each["Name"]: each["Type"] for each in storage["Columns"]}


def test_a_sync_brings_glue_up_to_the_table_and_keeps_what_others_have_set(
    spark: SparkSession, server: s3.Server, base: Path
) -> None:
    options = tables.write_table(spark, base, count=30, **PLAIN)
    # Glue keeps names in lower case.
    target = sync_params(server, "Lake", table="Trips")
    planned = run_job(spark, base, "sync", target, dry_run=True).details
    [table] = planned["tables"]
    assert (planned["refusals"], table["created"], table["partitions_added"]) == ([], True, 3)

    done = run_job(spark, base, "sync", target).details

    found, partitions = in_glue(server, "lake", "trips")
    assert partitions == {day: day for day in DAYS}
    assert found["PartitionKeys"] == [{"Name": "dt", "Type": "string"}]
    assert "dt" not in columns_of(found["StorageDescriptor"])
    first = found["Parameters"]["last_commit_time_sync"]
    assert done["tables"][0]["synced"] == {"before": None, "after": first}
    # Somebody describes the table and a column; a writer drops a partition, and adds a column and a partition.
    client, own = glue(server), ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")
    described = {name: found[name] for name in own} | {"Description": "All trips", "Owner": "fleet"}
    described["StorageDescriptor"]["Columns"][-1]["Comment"] = "where it ended"
    described["Parameters"]["classification"] = "hudi"
    client.update_table(DatabaseName="lake", TableInput=described)
    first_day = {"DatabaseName": "lake", "TableName": "trips", "PartitionValues": ["2026-01-01"]}
    noted = client.get_partition(**first_day)["Partition"]
    noted = {name: noted[name] for name in ("Values", "StorageDescriptor")} | {"Parameters": {"numRows": "10"}}
    client.update_partition(
        DatabaseName="lake", TableName="trips", PartitionValueList=["2026-01-01"], PartitionInput=noted
    )
    delete_partition(spark, base, options, "2026-01-02")
    new = tables.rows(spark, 30, 33).withColumn("dt", F.lit("2026-02-01")).withColumn("extra", F.expr("nullif(7, 0)"))
    tables.upsert(new, base, options)

    [table] = run_job(spark, base, "sync", target).details["tables"]

    assert (table["columns_added"], table["added_partitions"]) == (["extra int"], ["2026-02-01"])
    assert table["dropped_partitions"] == ["2026-01-02"]
    found, partitions = in_glue(server, "lake", "trips")
    assert set(partitions) == {"2026-01-01", "2026-01-03", "2026-02-01"}
    assert columns_of(found["StorageDescriptor"])["extra"] == "int"
    assert (found["Description"], found["Owner"], found["Parameters"]["classification"]) == (
        "All trips",
        "fleet",
        "hudi",
    )
    comments = [each.get("Comment") for each in found["StorageDescriptor"]["Columns"]]
    assert "where it ended" in comments
    assert first < found["Parameters"]["last_commit_time_sync"] == table["synced"]["after"]
    # Partitions from before have the new column too.
    old = client.get_partition(**first_day)["Partition"]
    assert old["Parameters"] == {"numRows": "10"}
    assert columns_of(old["StorageDescriptor"])["extra"] == "int"
    assert old["StorageDescriptor"]["Location"].endswith("/trips/2026-01-01")
    again = run_job(spark, base, "sync", target).details
    assert not again["changed"]
    assert in_glue(server, "lake", "trips")[0] == found


@pytest.mark.exhaustive
def test_glue_has_what_hudis_own_tool_writes_to_a_hive_metastore(
    spark: SparkSession, server: s3.Server, base: Path
) -> None:
    tables.write_table(spark, base, count=30, updates=1, version=9)
    run_job(spark, base, "sync", sync_params(server, "same"))
    jvm: Any = spark._jvm
    with hive_metastore.running(spark) as metastore:
        run_job(spark, base, "sync", params_into(metastore, "same"))
        hive = jvm.org.apache.hadoop.hive
        conf = hive.conf.HiveConf()
        conf.set("hive.metastore.uris", metastore.uris)
        client = hive.metastore.HiveMetaStoreClient(conf)
        for name in ("trips", "trips_rt", "trips_ro"):
            theirs, (ours, partitions) = client.getTable("same", name), in_glue(server, "same", name)
            storage, by_hudi = ours["StorageDescriptor"], theirs.getSd()
            assert columns_of(storage) == {each.getName(): each.getType() for each in by_hudi.getCols()}
            assert [each["Name"] for each in ours["PartitionKeys"]] == [
                each.getName() for each in theirs.getPartitionKeys()
            ]
            assert storage["InputFormat"] == by_hudi.getInputFormat(), name
            assert storage["OutputFormat"] == by_hudi.getOutputFormat()
            serde = by_hudi.getSerdeInfo()
            assert storage["SerdeInfo"]["SerializationLibrary"] == serde.getSerializationLib()
            assert storage["SerdeInfo"]["Parameters"] == dict(serde.getParameters())
            wanted, found = dict(theirs.getParameters()), dict(ours["Parameters"])
            assert found.pop("hudi.metadata-listing-enabled") == "TRUE"
            # The metastore itself writes the first two, and only Hudi's client of Hive writes the third.
            for key in ("transient_lastDdlTime", "numFiles", "hudi_writer_version"):
                wanted.pop(key, None)
            assert {key: found.get(key) for key in wanted} == wanted
            assert set(partitions) == DAYS
        client.close()


@pytest.mark.exhaustive
def test_many_partitions_are_created_moved_and_dropped_in_batches(
    spark: SparkSession, server: s3.Server, base: Path
) -> None:
    options = tables.writer_options(base, **PLAIN)
    day = F.date_format(F.date_add(F.lit("2026-01-01"), F.expr("cast(substring(id, 2) as int)")), "yyyy-MM-dd")
    tables.rows(spark, 0, 230).withColumn("dt", day).write.format("hudi").options(**options).save(str(base))
    run_job(spark, base, "sync", sync_params(server, "many"))
    partitions = in_glue(server, "many", "trips")[1]
    assert len(partitions) == 230
    client = glue(server)
    for value in list(partitions)[:130]:
        found = client.get_partition(DatabaseName="many", TableName="trips", PartitionValues=[value])["Partition"]
        moved = {"Values": [value], "StorageDescriptor": {**found["StorageDescriptor"], "Location": "s3://old/place"}}
        client.update_partition(
            DatabaseName="many", TableName="trips", PartitionValueList=[value], PartitionInput=moved
        )
    for number in range(60):
        strange = {"Values": [f"1999-{number:03}"], "StorageDescriptor": found["StorageDescriptor"]}
        client.create_partition(DatabaseName="many", TableName="trips", PartitionInput=strange)
    [table] = run_job(spark, base, "sync", sync_params(server, "many")).details["tables"]
    assert (table["partitions_moved"], table["partitions_dropped"], table["partitions_added"]) == (130, 60, 0)
    assert in_glue(server, "many", "trips")[1] == partitions


def test_refusals_and_errors_have_their_true_names(
    spark: SparkSession, server: s3.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "orders"
    tables.write_table(spark, base, count=6, partitioned=False, **PLAIN)
    client = glue(server)
    client.create_database(DatabaseInput={"Name": "taken"})
    elsewhere = {"Columns": [], "Location": "s3://lake/other", "InputFormat": "org.apache.hudi.x"}
    client.create_table(DatabaseName="taken", TableInput={"Name": "orders", "StorageDescriptor": elsewhere})
    iceberg = {"Columns": [], "Location": f"file://{base}", "InputFormat": "org.apache.iceberg.x"}
    client.create_table(DatabaseName="taken", TableInput={"Name": "as_iceberg", "StorageDescriptor": iceberg})
    refused = {
        "metastore-table-elsewhere": sync_params(server, "taken", table="orders"),
        "metastore-table-not-hudi": sync_params(server, "taken", table="as_iceberg"),
        "metastore-database-missing": sync_params(server, "nowhere", create_database=False),
    }
    for kind, params in refused.items():
        with pytest.raises(RefusedError) as raised:
            run_job(spark, base, "sync", params)
        assert raised.value.problem().type == kind
    assert client.get_table(DatabaseName="taken", Name="orders")["Table"]["StorageDescriptor"] == elsewhere

    monkeypatch.setattr(glue_client, "ATTEMPTS", 1)
    with pytest.raises(MetastoreUnavailableError):
        run_job(spark, base, "sync", {"metastore_uris": "glue+http://127.0.0.1:9", "database": "lake"})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StorageLoginError):
        run_job(spark, base, "sync", sync_params(server, "lake"))


def test_an_entry_that_somebody_changes_meanwhile_is_not_overwritten() -> None:
    """moto does not compare versions, so the error that Glue gives is checked by its name."""
    error = glue_client.error_of(
        "ConcurrentModificationException", "Update table failed due to concurrent modifications."
    )
    assert isinstance(error, MetastoreUnavailableError)
    assert error.retriable
