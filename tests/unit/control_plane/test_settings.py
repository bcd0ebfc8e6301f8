import json

import pytest

from jobs.storage.permissions import Permissions
from service.model.errors import SettingsError
from service.runtime import settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.Settings.model_fields:
        monkeypatch.delenv(f"GROUNDSKEEPER_{name.upper()}", raising=False)


def test_without_an_environment_the_service_is_for_this_machine_only() -> None:
    chosen = settings.load()
    assert chosen.host == "127.0.0.1"
    assert chosen.database == "sqlite:///groundskeeper.db"
    assert chosen.allowed_roots is None


@pytest.mark.parametrize("text", ["/lake, s3a://bucket/x", '["/lake", "s3a://bucket/x"]'])
def test_allowed_roots_are_a_list_with_commas_or_in_json(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_ALLOWED_ROOTS", text)
    assert settings.load().allowed_roots == ("/lake", "s3a://bucket/x")


def test_empty_allowed_roots_allow_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_ALLOWED_ROOTS", "")
    assert settings.load().allowed_roots == ()


def test_permissions_come_from_three_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.load().permissions == Permissions()
    monkeypatch.setenv("GROUNDSKEEPER_ALLOWED_ROOTS", "/lake")
    monkeypatch.setenv("GROUNDSKEEPER_LOCK_ROOTS", "/locks, /var/locks")
    monkeypatch.setenv("GROUNDSKEEPER_ALLOWED_CLASSES", "com.example.Lock")
    assert settings.load().permissions == Permissions(("/lake",), ("/locks", "/var/locks"), ("com.example.Lock",))


def test_storage_options_are_hadoops_and_their_values_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"fs.s3a.bucket.my-lake.access.key": "k", "spark.hadoop.fs.s3a.endpoint": "", "dfs.replication": "1"}
    monkeypatch.setenv("GROUNDSKEEPER_STORAGE_OPTIONS", json.dumps(options))
    assert settings.load().storage_options == options
    monkeypatch.setenv("GROUNDSKEEPER_STORAGE_OPTIONS", '{"fs.s3a.secret.key": "hush\\u0000"}')
    with pytest.raises(SettingsError, match=r"fs\.s3a\.secret\.key") as caught:
        settings.load()
    assert "hush" not in str(caught.value)


def test_a_schedule_is_a_list_of_seconds_and_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(settings.load().webhook_schedule_seconds) == 7
    monkeypatch.setenv("GROUNDSKEEPER_WEBHOOK_SCHEDULE_SECONDS", "0.5, 10")
    monkeypatch.setenv("GROUNDSKEEPER_SECRET_KEYS", "new-key,old-key")
    chosen = settings.load()
    assert chosen.webhook_schedule_seconds == (0.5, 10)
    assert [key.get_secret_value() for key in chosen.secret_keys] == ["new-key", "old-key"]
    assert "new-key" not in repr(chosen)


def test_an_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_PORT", "9000")
    assert settings.load().port == 9000
    assert settings.load(port=9001).port == 9001
    assert settings.load(port=None).port == 9000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "many"),
        ("WORKERS", "-1"),
        ("STORAGE_OPTIONS", "no json"),
        ("STORAGE_OPTIONS", '{"hoodie.base.path": "/etc"}'),
        ("STORAGE_OPTIONS", '{"fs.s3a.endpoint": "s3\\n"}'),
        ("LOG_LEVEL", "LOUD"),
        ("ALLOWED_ROOTS", "["),
    ],
)
def test_a_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"GROUNDSKEEPER_{name}", value)
    with pytest.raises(SettingsError, match=f"(?i){name}"):
        settings.load()


def test_a_token_is_not_shown_with_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_WORKER_TOKEN", "gk_a_hush")
    assert "hush" not in repr(settings.load())


def test_limits_of_single_kinds_are_an_object_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.load().max_active_by_kind == {"bucket_expansion": 1, "bucket_contraction": 1}
    monkeypatch.setenv("GROUNDSKEEPER_MAX_ACTIVE_BY_KIND", '{"clustering": 3}')
    assert settings.load().max_active_by_kind == {"clustering": 3}
    monkeypatch.setenv("GROUNDSKEEPER_MAX_ACTIVE_BY_GROUP", '{"large": 2}')
    assert settings.load().max_active_by_group == {"large": 2}
    monkeypatch.setenv("GROUNDSKEEPER_MAX_ACTIVE_BY_KIND", '{"vacuum": 3}')
    with pytest.raises(SettingsError, match="compaction"):
        settings.load()


def test_each_concurrent_poll_takes_a_connection_to_postgresql_from_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_DATABASE", "postgresql://db/gk")
    assert settings.load().pool_connections == 24 - 1 - 8 - settings.FLEET_CONNECTIONS
    monkeypatch.setenv("GROUNDSKEEPER_LOOK_THREADS", "20")
    with pytest.raises(SettingsError, match="DATABASE_CONNECTIONS: must be 25 at least"):
        settings.load()
    monkeypatch.setenv("GROUNDSKEEPER_DATABASE_CONNECTIONS", "25")
    assert settings.load().pool_connections == 4


def test_polls_from_sqlite_need_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_LOOK_THREADS", "100")
    assert settings.load().look_threads == 100
