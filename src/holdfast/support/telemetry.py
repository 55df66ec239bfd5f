"""Telemetry: traces that go on from whoever submitted a run to the run and its steps.

    submitter's span ──traceparent──▶ runs.trace ──▶ the run's span (CONSUMER), one an attempt ──▶ its steps' spans

OpenTelemetry is never imported here: unless the application has done so itself, and has set a tracer provider, all of
this costs a look into a dictionary. Every attempt is a child of the submitter's span, later ones too: a run that waits
for its children goes on as another attempt, and half of its trace would be of no use. No text goes into a span that
has not been redacted.
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
FLUSH = 2_000  # milliseconds that the last spans of a process may take to leave it

_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NOTHING: contextlib.nullcontext[None] = contextlib.nullcontext()
_redact: ContextVar[Callable[[str], str] | None] = ContextVar("holdfast_redact", default=None)


def current() -> str | None:
    """Where the caller stands in a trace, as W3C traceparent; None if nowhere."""
    trace: Any = sys.modules.get(API)
    if trace is None:
        return None
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def traces() -> bool:
    """Whether spans go anywhere."""
    return _api() is not None


class Span:
    """A run's span, to be told how its attempt came out."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def ended(self, outcome: str, error: str | None) -> None:
        """Say how it came out; with an error, which has been redacted already, the span is an error's."""
        self._span.set_attribute("holdfast.outcome", outcome)
        if error is not None:
            _failed(self._span, error, {"exception.message": _last_line(error), "exception.stacktrace": error})


@contextlib.contextmanager
def run(trace: str | None, name: str, attributes: Mapping[str, Any], redact: Callable[[str], str]) -> Iterator[Span]:
    """The span of one attempt of a run, which goes on from the submitter's; ask `traces` first."""
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
    """In a run's own process: its steps belong to the span that its worker has begun."""
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
    """The span of a step."""
    return _NOTHING if _redact.get() is None else _step(name)


def flush() -> None:
    """Let the spans go that are still here, before a process ends without further ado."""
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
    """The API, if the application has imported it and says where spans go."""
    trace: Any = sys.modules.get(API)
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace


def _remote(api: Any, trace: str | None) -> Any:
    """The context that a traceparent says; None for what is none."""
    found = _PARENT.fullmatch(trace or "")
    if found is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    context = api.SpanContext(trace_id, span_id, is_remote=True, trace_flags=api.TraceFlags(flags))
    # Nothing of what else the calling thread may carry belongs to the run.
    from opentelemetry.context import Context

    return api.set_span_in_context(api.NonRecordingSpan(context), Context()) if context.is_valid else None


def _failed(span: Any, error: str, attributes: Mapping[str, str]) -> None:
    trace: Any = sys.modules[API]
    span.add_event("exception", dict(attributes))
    span.set_status(trace.Status(trace.StatusCode.ERROR, _last_line(error)))


def _last_line(error: str) -> str:
    lines = error.strip().splitlines()
    return lines[-1][:1000] if lines else ""
