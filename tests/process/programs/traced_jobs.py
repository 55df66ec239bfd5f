"""An application whose processes all write their spans to one file, one span a line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from holdfast import Context, Holdfast

hf = Holdfast(os.environ.get("HOLDFAST_URL", "sqlite:///traced.db"), poll_interval=0.05, lease=3)


class Lines(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with Path(os.environ["TEST_SPANS"]).open("a") as file:
            for span in spans:
                assert span.context is not None
                line = {
                    "name": span.name,
                    "kind": span.kind.name,
                    "trace": span.context.trace_id,
                    "id": span.context.span_id,
                    "parent": span.parent.span_id if span.parent else None,
                    "pid": os.getpid(),
                    "attributes": dict(span.attributes or {}),
                }
                file.write(json.dumps(line) + "\n")
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Lines(), schedule_delay_millis=60_000))
if "TEST_SPANS" in os.environ:
    trace.set_tracer_provider(provider)


@hf.job(isolation="process")
def isolated(ctx: Context) -> int:
    return ctx.step("isolated step", int, "1")


@hf.job()
def threaded(ctx: Context) -> int:
    return ctx.step("threaded step", int, "1")
