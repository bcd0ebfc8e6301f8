"""Traces by OpenTelemetry: a request, its job, each attempt with its steps and Spark jobs, and the commit.

Tracing is off, and costs nothing, until `start` finds an endpoint in the environment and the extra `opentelemetry`
installed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from jobs.trace_context import Kind, Value

if TYPE_CHECKING:
    from jobs.otel import OtelTracer

logger = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Span(Protocol):
    """A span that has begun. Secrets are removed from texts."""

    def set(self, **attributes: Value | None) -> None:
        """Adds attributes; `__` in a name stands for a dot. None adds nothing."""

    def rename(self, name: str) -> None: ...

    def fail(self, why: str) -> None: ...

    @property
    def traceparent(self) -> str | None: ...


class _Nothing:
    """The span in a process that exports no traces."""

    traceparent = None

    def set(self, **_attributes: Value | None) -> None:
        pass

    def rename(self, _name: str) -> None:
        pass

    def fail(self, _why: str) -> None:
        pass


_NOTHING = _Nothing()
_tracer: OtelTracer | None = None


def start(service: str, version: str | None, instance: str | None, environment: Mapping[str, str]) -> None:
    """Exports the spans of this process from now on, if the environment names an endpoint."""
    global _tracer
    if not any(environment.get(name) for name in ENDPOINTS):
        return
    try:
        from jobs.otel import OtelTracer
    except ImportError as error:
        logger.warning("No traces are exported: %s. Install the extra opentelemetry.", error)
        return
    _tracer = OtelTracer(environment.get("OTEL_SERVICE_NAME") or service, version, instance)


def is_on() -> bool:
    return _tracer is not None


def flush() -> None:
    """Sends what waits to be sent."""
    if _tracer is not None:
        _tracer.flush()


@contextmanager
def span(
    name: str, *, parent: str | None = None, kind: Kind = "internal", **attributes: Value | None
) -> Iterator[Span]:
    """Measures the block. Without `parent` its parent is the span of the block around it."""
    if _tracer is None:
        yield _NOTHING
        return
    with _tracer.span(name, parent, kind) as begun:
        begun.set(**attributes)
        yield begun


def record(
    name: str,
    *,
    parent: str | None,
    start: datetime,
    end: datetime,
    span_id: str | None = None,
    error: str | None = None,
    **attributes: Value | None,
) -> None:
    """Adds a span that was measured elsewhere."""
    if _tracer is not None:
        _tracer.record(name, parent=parent, start=start, end=end, span_id=span_id, attributes=attributes, error=error)


def current() -> str | None:
    """Returns the `traceparent` of the span that this thread or task is in."""
    return None if _tracer is None else _tracer.current()


def for_new_job() -> str | None:
    """Returns the `traceparent` to store with a new job: the span that submits it, or a new trace if there is no
    span."""
    return None if _tracer is None else _tracer.current() or _tracer.new_trace("job")


class Steps:
    """The steps of an attempt, one after the other, each a span. For one thread."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self.begun: list[tuple[datetime, str]] = []
        """For each step, its beginning and its `traceparent`."""

    def begin(self, name: str) -> None:
        self.end()
        if is_on():
            step = self._open.enter_context(span(name))
            if step.traceparent:
                self.begun.append((datetime.now(UTC), step.traceparent))

    def end(self) -> None:
        self._open.close()
