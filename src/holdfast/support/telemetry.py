"""Telemetry: continues the submitter's trace in the run and its steps.

    submitter's span ──▶ runs.traceparent ──▶ one span per attempt (CONSUMER) ──▶ one span per step

OpenTelemetry is used only if the application has imported it and set a tracer provider. Otherwise all of this costs
one dictionary lookup. Every attempt is a child of the submitter's span, so that the trace stays whole when a run waits
for its children and continues as another attempt. Every text is redacted before it goes into a span.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

NAME = "holdfast"
API = "opentelemetry.trace"
FLUSH = 2_000  # milliseconds to export the last spans of a process

_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NOTHING: contextlib.nullcontext[None] = contextlib.nullcontext()
_redact: ContextVar[Callable[[str], str] | None] = ContextVar("holdfast_redact", default=None)


def current() -> str | None:
    """Return the caller's current span as a W3C traceparent; None if there is no span."""
    trace: Any = sys.modules.get(API)
    if trace is None:
        return None
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def traces() -> bool:
    """Whether the application exports spans."""
    return _api() is not None


class Span:
    """The span of one attempt of a run; `ended` records the attempt's outcome."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def ended(self, outcome: str, error: str | None) -> None:
        """Record the outcome. An error, already redacted, sets the span's status to ERROR."""
        self._span.set_attribute("holdfast.outcome", outcome)
        if error is not None:
            _failed(self._span, error, {"exception.message": _last_line(error), "exception.stacktrace": error})


@contextlib.contextmanager
def run(trace: str | None, name: str, attributes: Mapping[str, Any], redact: Callable[[str], str]) -> Iterator[Span]:
    """Open the span of one attempt of a run, as a child of the submitter's span. Check `traces` first."""
    api = _api()
    assert api is not None
    token = _redact.set(redact)
    tracer = api.get_tracer(NAME)
    span = tracer.start_span(name, context=_remote(api, trace), kind=api.SpanKind.CONSUMER, attributes=dict(attributes))
    try:
        with api.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield Span(span)
    finally:
        _redact.reset(token)


@contextlib.contextmanager
def going_on(trace: str | None, redact: Callable[[str], str]) -> Iterator[None]:
    """In the process of an isolated run, make the worker's span the parent of the steps' spans."""
    api = _api()
    context = None if api is None else _remote(api, trace)
    if context is None:
        yield
        return
    from opentelemetry import context as contexts

    token, hidden = contexts.attach(context), _redact.set(redact)
    try:
        yield
    finally:
        contexts.detach(token)
        _redact.reset(hidden)


def step(name: str) -> contextlib.AbstractContextManager[None]:
    """Open the span of a step."""
    return _NOTHING if _redact.get() is None else _step(name)


def flush() -> None:
    """Export the remaining spans before the process exits."""
    api = _api()
    force = None if api is None else getattr(api.get_tracer_provider(), "force_flush", None)
    if force is not None:
        with contextlib.suppress(Exception):
            force(FLUSH)


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    api, redact = _api(), _redact.get()
    if api is None or redact is None:
        yield
        return
    span = api.get_tracer(NAME).start_span(f"step {name}", attributes={"holdfast.step": name})
    with api.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield
        except Exception as error:
            text = redact(f"{type(error).__name__}: {error}")[:2000]
            _failed(span, text, {"exception.type": type(error).__qualname__, "exception.message": text})
            raise


def _api() -> Any:
    """Return OpenTelemetry's trace module if the application has imported it and set a tracer provider; else None."""
    trace: Any = sys.modules.get(API)
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace


def _remote(api: Any, trace: str | None) -> Any:
    """Return the context that a traceparent describes; None if it is invalid."""
    match = _PARENT.fullmatch(trace or "")
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    context = api.SpanContext(trace_id, span_id, is_remote=True, trace_flags=api.TraceFlags(flags))
    # Start from an empty context: the calling thread's context does not belong to the run.
    from opentelemetry.context import Context

    return api.set_span_in_context(api.NonRecordingSpan(context), Context()) if context.is_valid else None


def _failed(span: Any, error: str, attributes: Mapping[str, str]) -> None:
    trace: Any = sys.modules[API]
    span.add_event("exception", dict(attributes))
    span.set_status(trace.Status(trace.StatusCode.ERROR, _last_line(error)))


def _last_line(error: str) -> str:
    lines = error.strip().splitlines()
    return lines[-1][:1000] if lines else ""
