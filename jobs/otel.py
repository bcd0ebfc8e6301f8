"""Spans of OpenTelemetry, exported by OTLP over HTTP. Needs the extra `opentelemetry`; the SDK reads the variables
`OTEL_*` itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from jobs.redaction import redacted
from jobs.trace_context import Kind, Value, parsed, without_span

if TYPE_CHECKING:
    from opentelemetry.trace import Span


_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "consumer": SpanKind.CONSUMER}
_FLUSH_MILLISECONDS = 5000


class _Ids(RandomIdGenerator):
    """Random ids, except in a `with` block of `given`."""

    def __init__(self) -> None:
        self._given: ContextVar[tuple[int | None, int | None]] = ContextVar("given", default=(None, None))

    @contextmanager
    def given(self, trace_id: int | None, span_id: int | None) -> Iterator[None]:
        token = self._given.set((trace_id, span_id))
        try:
            yield
        finally:
            self._given.reset(token)

    def generate_trace_id(self) -> int:
        return self._given.get()[0] or super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self._given.get()[1] or super().generate_span_id()


class OtelSpan:
    def __init__(self, span: Span) -> None:
        self._span = span

    def set(self, **attributes: Value | None) -> None:
        self._span.set_attributes(_shown(attributes))

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, why: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR, redacted(why)[:1000]))

    @property
    def traceparent(self) -> str:
        return _text(self._span.get_span_context())


class OtelTracer:
    """Exports in a thread of its own. Spans that the receiver does not take in time are dropped."""

    def __init__(self, service: str, version: str | None, instance: str | None) -> None:
        names = {"service.name": service, "service.version": version, "service.instance.id": instance}
        self._ids = _Ids()
        self._provider = TracerProvider(
            resource=Resource.create({name: value for name, value in names.items() if value}), id_generator=self._ids
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("groundskeeper", version or "")

    @contextmanager
    def span(self, name: str, parent: str | None, kind: Kind) -> Iterator[OtelSpan]:
        context = _context(parent) if parent else None
        with self._tracer.start_as_current_span(
            name, context, kind=_KINDS[kind], record_exception=False, set_status_on_exception=False
        ) as span:
            begun = OtelSpan(span)
            try:
                yield begun
            except BaseException as error:
                # The text of an error may have a secret, so the SDK must not record it.
                begun.fail(f"{type(error).__name__}: {error}")
                raise

    def record(
        self,
        name: str,
        *,
        parent: str | None,
        start: datetime,
        end: datetime,
        span_id: str | None,
        attributes: Mapping[str, Value | None],
        error: str | None,
    ) -> None:
        ids = parsed(parent)
        # A span without a parent is the first one of its trace.
        trace_id = ids[0] if ids and not ids[1] else None
        with self._ids.given(trace_id, int(span_id, 16) if span_id else None):
            span = self._tracer.start_span(name, _context(parent), start_time=_nanoseconds(start))
        span.set_attributes(_shown(attributes))
        if error is not None:
            OtelSpan(span).fail(error)
        span.end(_nanoseconds(max(start, end)))

    def current(self) -> str | None:
        context = trace.get_current_span().get_span_context()
        return _text(context) if context.is_valid else None

    def new_trace(self, name: str) -> str:
        trace_id = self._ids.generate_trace_id()
        sampled = self._provider.sampler.should_sample(None, trace_id, name).decision is Decision.RECORD_AND_SAMPLE
        return without_span(trace_id, int(sampled))

    def flush(self) -> None:
        self._provider.force_flush(_FLUSH_MILLISECONDS)


def _context(parent: str | None) -> Context:
    """Returns the context of a span of another process; an empty context if there is no such span."""
    ids = parsed(parent)
    if ids is None or not ids[1]:
        return Context()
    remote = SpanContext(ids[0], ids[1], is_remote=True, trace_flags=TraceFlags(ids[2] & 1))
    return trace.set_span_in_context(NonRecordingSpan(remote), Context())


def _text(context: SpanContext) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"


def _shown(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {
        name.replace("__", "."): redacted(value)[:1000] if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None
    }


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1e9)
