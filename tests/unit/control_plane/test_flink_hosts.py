from __future__ import annotations

import pytest

from service.model.table_errors import FlinkHostNotAllowedError
from service.queue.hand_over.flink_hosts import check_allowed


@pytest.mark.parametrize(
    ("url", "hosts", "allowed"),
    [
        ("http://flink:8081", ("flink",), True),
        ("http://FLINK:8081/proxy/app_1", ("Flink:8081",), True),
        ("https://flink", ("flink:443",), True),
        ("http://[::1]:8081", ("[::1]:8081",), True),
        ("http://flink:8081", (), False),
        ("http://flink:8081", ("flink:8082",), False),
        ("http://flink.evil.example", ("flink",), False),
        ("http://169.254.169.254", ("flink",), False),
        ("http://flink@evil.example", ("flink",), False),
        ("http://flink:x", ("flink",), False),
        ("http://", ("",), False),
    ],
)
def test_only_hosts_that_the_operator_names_are_called(url: str, hosts: tuple[str, ...], allowed: bool) -> None:
    if allowed:
        check_allowed(url, hosts)
    else:
        with pytest.raises(FlinkHostNotAllowedError):
            check_allowed(url, hosts)
