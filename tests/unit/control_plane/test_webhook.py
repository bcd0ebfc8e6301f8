"""Tests signatures, headers, secrets, and the selection of events."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from service.access.errors import SecretKeyMissingError, SecretUnreadableError
from service.access.secret_cipher import SecretCipher, key_from
from service.api.event_catalogue import CATALOGUE
from service.delivery import headers
from service.delivery.errors import HeaderNotAllowedError
from service.delivery.signing import new_secret, signed_headers
from service.delivery.webhook import Webhook
from service.events.event import Event, EventType, event_id
from service.model.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_the_reference_library_verifies_the_signatures_of_both_secrets(text: str) -> None:
    old, new = new_secret(), new_secret()
    body = text.encode()
    signed = signed_headers([new, old], "evt_1", int(datetime.now(UTC).timestamp()), body)
    for secret in (old, new):
        Verifier(secret).verify(body, signed, json_parse=False)
    for altered, by in ((body + b" ", new), (body, new_secret())):
        with pytest.raises(WebhookVerificationError):
            Verifier(by).verify(altered, signed, json_parse=False)


def test_ids_follow_from_what_happened_and_have_no_full_stop() -> None:
    assert event_id("job.queued", "job_1", 0) == event_id("job.queued", "job_1", 0)
    assert event_id("job.queued", "job_1", 0) != event_id("job.queued", "job_1", 1)
    assert "." not in event_id("job.queued", "a.b")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "x"),
        ("content-length", "0"),
        ("Content-Type", "text/plain"),
        ("Webhook-Signature", "v1,x"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("X-A", "a\r\nX-B: c"),
        ("X-A", "a\nb"),
        ("X-A", "a\0b"),
        ("X-A", ""),
        ("X-A", " padded "),
        ("X-A", "ümlaut"),
        ("X-A", "x" * 4097),
        ("X A", "x"),
        ("X-A:", "x"),
        ("X-A\r\nX-B", "x"),
        ("", "x"),
    ],
)
def test_headers_that_would_change_the_request_are_refused(name: str, value: str) -> None:
    with pytest.raises(HeaderNotAllowedError):
        headers.checked({name: value})


def test_custom_headers_are_sent_unchanged() -> None:
    mine = {"Authorization": "Bearer abc", "X-Trace": "1"}
    assert headers.checked(mine) == mine
    with pytest.raises(HeaderNotAllowedError) as caught:
        headers.checked({"Authorization": "Bearer s3cret\n"})
    assert "s3cret" not in caught.value.detail
    with pytest.raises(HeaderNotAllowedError):
        headers.checked({"X-A": "1", "x-a": "2"})
    with pytest.raises(HeaderNotAllowedError):
        headers.checked({f"X-{number}": "1" for number in range(21)})


def test_a_sealed_secret_is_opened_by_the_key_that_sealed_it_and_no_other() -> None:
    first, second = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    sealed = SecretCipher([first]).seal("whsec_x")
    assert "whsec_x" not in sealed
    assert SecretCipher([second, first]).open(sealed) == "whsec_x"
    for other in (SecretCipher([second]), SecretCipher([])):
        with pytest.raises(SecretUnreadableError):
            other.open(sealed)
    with pytest.raises(SecretKeyMissingError):
        SecretCipher([]).seal("x")
    with pytest.raises(SettingsError):
        SecretCipher(["too short"])


def test_the_key_file_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "gk.key"
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: key_from(path), range(32)))
    assert len(keys) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    SecretCipher(list(keys)).seal("x")
    with pytest.raises(SettingsError):
        key_from(tmp_path / "none" / "gk.key")


@pytest.mark.parametrize(
    ("types", "tables", "is_wanted"),
    [
        (("*",), (), True),
        (("job.*",), (), True),
        (("job.failed", "commit.*"), (), True),
        (("commit.*",), (), False),
        (("*",), ("tbl_1",), True),
        (("*",), ("ord*",), True),
        (("*",), ("Ord*",), False),
        (("*",), ("tbl_*",), False),  # Patterns match names, not ids.
        (("*",), ("other", "orders"), True),
        (("commit.*",), ("orders",), False),
    ],
)
def test_a_webhook_gets_the_types_and_tables_that_it_asks_for(
    types: tuple[str, ...], tables: tuple[str, ...], is_wanted: bool
) -> None:
    webhook = Webhook("wh_1", "https://a.example", NOW, NOW, "", "", types=types, tables=tables)
    table = {"id": "tbl_1", "name": "orders", "base_path": "/lake/orders"}
    assert webhook.wants(Event("evt_1", "job.failed", NOW, "tbl_1", {"table": table})) is is_wanted


def test_events_without_a_table_go_to_webhooks_for_all_tables() -> None:
    event = Event("evt_1", "webhook.disabled", NOW)
    assert Webhook("wh_1", "https://a.example", NOW, NOW, "", "").wants(event)
    assert not Webhook("wh_1", "https://a.example", NOW, NOW, "", "", tables=("*",)).wants(event)


def test_every_type_is_in_the_catalogue_with_an_example_that_fits() -> None:
    assert set(CATALOGUE) == set(EventType)
    for entry in CATALOGUE.values():
        Draft202012Validator.check_schema(entry.schema)
        Draft202012Validator(entry.schema).validate(entry.example)
        assert entry.description.endswith(".")
