"""A receiver of traces: OTLP over HTTP, in protobuf."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.integration.serving import eventually
from tests.support.stand_in import Answer, Asked, StandIn

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Span:
    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    is_error: bool
    attributes: dict[str, Any]


class Collector(StandIn):
    def __init__(self) -> None:
        self.spans: list[Span] = []
        super().__init__(self._answer)
        self.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}

    def _answer(self, asked: Asked) -> Answer:
        body = gzip.decompress(asked.body) if asked.headers.get("Content-Encoding") == "gzip" else asked.body
        self.spans += _spans(ExportTraceServiceRequest.FromString(body))
        status = 200 if asked.path == "/v1/traces" else 404
        return Answer(status, headers={"Content-Type": "application/x-protobuf"})

    def named(self, name: str) -> list[Span]:
        return [span for span in list(self.spans) if span.name == name]

    def wait_for(self, name: str, wanted: Callable[[Span], bool] = lambda _: True) -> Span:
        assert eventually(lambda: any(map(wanted, self.named(name))), 60), [span.name for span in self.spans]
        return next(filter(wanted, self.named(name)))


def _spans(request: ExportTraceServiceRequest) -> list[Span]:
    return [
        Span(
            service=next(each.value.string_value for each in group.resource.attributes if each.key == "service.name"),
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            start=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
            is_error=span.status.code == span.status.STATUS_CODE_ERROR,
            attributes={each.key: _value(each.value) for each in span.attributes},
        )
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
