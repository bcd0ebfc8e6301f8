"""Tests which values count as secrets, and the redaction of texts with secrets."""

from __future__ import annotations

import io
import logging
import time

import pytest

from jobs.redaction import MASK, RedactingFormatter, is_secret, redacted, redacted_json, secrets_of


@pytest.mark.parametrize(
    "name",
    [
        "fs.s3a.access.key",
        "fs.s3a.secret.key",
        "FS.S3A.SESSION.TOKEN",
        "hoodie.write.lock.hivemetastore.password",
        "my_access-key",
        "fs.azure.credential",
        "fs.azure.account.key.lake.dfs.core.windows.net",
        "fs.azure.sas.container.lake.blob.core.windows.net",
        "basic.auth.user.info",
        "connection_string",
        "sasl.jaas.config",
        "Authorization",
        "hoodie.write.commit.callback.http.api.key",
        "password.timeout",
    ],
)
def test_options_with_the_name_of_a_secret_are_secrets(name: str) -> None:
    assert is_secret(name, "hush")


@pytest.mark.parametrize(
    "value",
    [
        "jdbc:postgresql://db/hive?user=hudi&password=hush",
        "jdbc:mysql://hudi:hu/s#h@db/hive",
        "jdbc:oracle:thin:hudi/hush@//db:1521/hive",
        "jdbc:sqlserver://db:1433;databaseName=hive;password=hush",
        "redis://:hush@cache:6379",
        "postgresql://hudi:1234@db/hive",
        "https://lake.blob.core.windows.net/c?sv=2022&sig=hu%2Fsh",
        "https://b.s3.amazonaws.com/k?X-Amz-Credential=a&X-Amz-Signature=hush",
        "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=aHVzaA==;EndpointSuffix=core.windows.net",
        "Authorization:Bearer abcdefgh12345678",
        "Basic aHVkaTpodXNo",
        "X-Other: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
        'org.apache.kafka.PlainLoginModule required username="hudi" password="hu sh";',
    ],
)
def test_values_with_the_shape_of_a_secret_are_secrets_under_any_name(value: str) -> None:
    assert is_secret("hoodie.something", value)
    assert "hush" not in redacted(f"Cannot connect to {value}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.write.lock.zookeeper.session_timeout_ms", "30000"),
        ("fs.s3a.session.token.timeout", "30"),
        ("fs.s3a.delegation.tokens.enabled", "false"),
        ("fs.s3a.endpoint", "http://s3:9000"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.security.credentials.renewalRatio", "0.25"),
        ("spark.kerberos.renewal.credentials", "ccache"),
        ("hoodie.datasource.write.recordkey.field", "session_id"),
        ("hoodie.write.lock.zookeeper.lock_key", "orders"),
        ("hoodie.datasource.hive_sync.jdbcurl", "jdbc:hive2://hive:10000"),
        ("hoodie.datasource.hive_sync.metastore.uris", "thrift://a:9083,thrift://b:9083"),
        ("compass.sigma", "north"),
        ("container", "abfss://lake@account.dfs.core.windows.net/orders"),
        ("page", "http://host:8081/@name"),
    ],
)
def test_a_text_that_only_resembles_a_secret_is_shown(name: str, value: str) -> None:
    assert not is_secret(name, value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{user=hudi, password=hush}", f"{{user=hudi, password={MASK}"),
        ('{"password": "hu sh", "user": "hudi"}', f'{{"password": {MASK}, "user": "hudi"}}'),
        ('password="hush', f"password={MASK}"),
        ("api-key: 4f3c2a9d", f"api-key: {MASK}"),
        ("at redis://hudi:hush@cache/0.", f"at redis://hudi:{MASK}@cache/0."),
        ("The token is not valid.", "The token is not valid."),
        ("secret.key: String should have at most 16384 characters", None),
        ("GROUNDSKEEPER_SECRET_KEYS: A secret key must be 32 random bytes", None),
    ],
)
def test_a_text_keeps_everything_but_its_secrets(text: str, shown: str | None) -> None:
    assert redacted(text) == (shown or text)
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "piece",
    [
        "://a:",
        "://:",
        "a",
        "a.",
        "=",
        '"',
        "a: ",
        "a:    ",
        "pw='",
        'password:"\\',
        "Basic ",
        "eyJaaaaaaaa.",
        "@",
        "pw=",
    ],
)
def test_a_long_text_of_one_repeated_piece_is_redacted_in_seconds(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    began = time.process_time()
    redacted(text)
    assert time.process_time() - began < 5


def test_secrets_of_a_job_are_recognized_without_a_shape() -> None:
    known = secrets_of({"my.password": "correct horse", "pw": "no", "fs.s3a.endpoint": "http://s3:9000"})
    assert known == {"correct horse"}
    assert redacted("'correct horse' is wrong", known) == f"'{MASK}' is wrong"
    details = {"correct horse": ["a/correct horse", 7, None, "password=x"], "more": {"a": "correct horse"}}
    expected = {"correct horse": [f"a/{MASK}", 7, None, "password=x"], "more": {"a": MASK}}
    assert redacted_json(details, known) == expected


def test_logs_contain_neither_shapes_nor_known_secrets_even_in_stack_traces() -> None:
    written = io.StringIO()
    handler, formatter = logging.StreamHandler(written), RedactingFormatter("%(message)s")
    formatter.learn({"correct horse"})
    handler.setFormatter(formatter)
    logger = logging.Logger("test")
    logger.addHandler(handler)
    try:
        raise ValueError("correct horse: jdbc:x://u:hush@db")
    except ValueError:
        logger.exception("with %s", {"password": "hush"})
    assert "ValueError" in written.getvalue()
    assert "hush" not in written.getvalue()
    assert "correct horse" not in written.getvalue()
