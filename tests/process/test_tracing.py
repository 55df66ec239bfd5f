"""A trace contains the spans of the submitter, the run and its steps, across processes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.process.support import PROGRAMS
from tests.waiting import wait_for

from holdfast import Context, Holdfast, Retry, RunFailed
from holdfast.support import telemetry
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Set a tracer provider for this test only; OpenTelemetry's own function sets one only once per process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


@pytest.fixture
def fast(sqlite_url: str) -> Iterator[Holdfast]:
    with Holdfast(sqlite_url, poll_interval=0.05, lease=3, redact=[r"card (\d+)"]) as hf:
        yield hf


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: Any) -> int:
    found: int = span.get_span_context().span_id
    return found


def trace_of(span: Any) -> int:
    found: int = span.get_span_context().trace_id
    return found


def traces(database: Database) -> dict[str, str | None]:
    return dict(database.all("select job, traceparent from holdfast_runs"))


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_the_span_of_a_run_is_a_child_of_its_submitter_and_steps_are_children_of_the_run(
    fast: Holdfast, exported: InMemorySpanExporter, kind: str
) -> None:
    def double(n: int) -> int:
        return 2 * n

    if kind == "thread":

        @fast.job(name="work")
        def work(ctx: Context) -> int:
            return ctx.step("double", double, 4)
    else:

        @fast.job(name="work")
        async def work(ctx: Context) -> int:
            return ctx.step("double", double, 4)

    tracer = trace.get_tracer("test")
    with fast.worker(), tracer.start_as_current_span("request") as request:
        run = work.submit()
        assert run.result(timeout=60) == 8
    [span], [step] = named(exported, "run work"), named(exported, "step double")
    assert span.kind is SpanKind.CONSUMER
    assert (parent_of(span), parent_of(step)) == (id_of(request), id_of(span))
    assert trace_of(span) == trace_of(step) == trace_of(request)
    attributes = dict(span.attributes or {})
    assert attributes["holdfast.job"] == "work"
    assert attributes["holdfast.run_id"] == attributes["messaging.message.id"] == run.id
    assert (attributes["holdfast.attempt"], attributes["holdfast.outcome"]) == (1, "succeeded")
    assert span.status.status_code is StatusCode.UNSET


def test_every_attempt_belongs_to_the_trace_of_the_submitter_and_errors_are_redacted(
    fast: Holdfast, exported: InMemorySpanExporter
) -> None:
    def pay() -> None:
        raise ValueError("card 4111111111 was refused, token=hunter2hunter2")

    @fast.job(name="work", max_attempts=2, retry=Retry(delay=0, jitter=0))
    def work(ctx: Context) -> None:
        ctx.step("pay", pay)

    with fast.worker(), trace.get_tracer("test").start_as_current_span("request") as request:
        with pytest.raises(RunFailed):
            work.submit().result(timeout=60)
    spans = named(exported, "run work")
    assert [parent_of(span) for span in spans] == [id_of(request)] * 2
    assert [dict(span.attributes or {})["holdfast.outcome"] for span in spans] == ["retried", "failed"]
    for span in [*spans, *named(exported, "step pay")]:
        assert span.status.status_code is StatusCode.ERROR
        recorded = f"{span.status.description}{[dict(event.attributes or {}) for event in span.events]}"
        assert "ValueError" in recorded
        assert "[redacted]" in recorded
        assert "4111111111" not in recorded
        assert "hunter2" not in recorded


def test_a_run_that_waits_for_its_children_stays_in_one_trace_with_them(
    fast: Holdfast, exported: InMemorySpanExporter
) -> None:
    waits = threading.Event()

    @fast.job(name="part")
    def part() -> int:
        assert waits.wait(60)
        return 1

    @fast.job(name="whole")
    def whole(ctx: Context) -> int:
        return sum(ctx.gather(*(ctx.submit_child(part) for _ in range(2))))

    with fast.worker(), trace.get_tracer("test").start_as_current_span("request") as request:
        run = whole.submit()
        wait_for(lambda: "RUN_WAITING_FOR_CHILDREN" in [event.kind for event in run.timeline()])
        waits.set()
        assert run.result(timeout=60) == 2
    first, second = named(exported, "run whole")
    assert dict(first.attributes or {})["holdfast.outcome"] == "waits"
    assert [parent_of(span) for span in (first, second)] == [id_of(request)] * 2
    assert {parent_of(span) for span in named(exported, "run part")} == {id_of(first)}


def test_every_way_of_submitting_stores_the_trace(
    hf: Holdfast, manual: Manual, database: Database, exported: InMemorySpanExporter
) -> None:
    for name in ("one", "many", "joined"):
        hf.job(name=name)(lambda: None)

    @hf.build(name="build")
    def build(fingerprint: str) -> None: ...

    needy = hf.job(name="needy")(lambda: None)
    video = hf.pipeline("video")

    @video.stage()
    def split() -> list[int]:
        return [1]

    @video.stage(after=split, each="segment")
    def part(segment: int) -> int:
        return segment

    hf.start()
    with trace.get_tracer("test").start_as_current_span("request"):
        current = telemetry.current()
        hf.submit("one")
        hf.jobs["many"].submit_many([{}])
        with contextlib.closing(database.connect()) as connection:
            database.begin(connection)
            hf.jobs["joined"].using(connection=connection).submit()
            connection.execute("commit")
        needy.using(depends_on=[build.request("f")]).submit()
        video.submit()
    hf.submit("one")
    manual.run_all()
    assert current is not None
    kept = traces(database)
    assert kept.pop("one") is None  # the last run of this job was submitted outside of a span
    assert set(kept.values()) == {current}
    assert {"many", "joined", "needy", "build", "video", "video.split", "video.part"} <= kept.keys()


def test_an_invalid_traceparent_is_ignored(fast: Holdfast, exported: InMemorySpanExporter) -> None:
    for hostile in (None, "", "x" * 200, "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "00-zz-zz-01"):
        with telemetry.run(hostile, "run work", {}, str) as span:
            span.ended("succeeded", None)
    assert [span.parent for span in exported.get_finished_spans()] == [None] * 5


def test_without_a_provider_nothing_is_traced_or_stored(fast: Holdfast) -> None:
    @fast.job(name="work")
    def work(ctx: Context) -> str | None:
        with telemetry.step("nothing"):
            return telemetry.current()

    with fast.worker():
        run = work.submit()
        assert run.result(timeout=60) is None
    assert fast.read(lambda tx: tx.all("get_submissions", ids=[run.id]))[0]["traceparent"] is None


def test_holdfast_never_imports_opentelemetry() -> None:
    program = "import sys, holdfast, holdfast.worker.worker; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_a_trace_continues_through_a_worker_and_an_isolated_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: InMemorySpanExporter
) -> None:
    spans = tmp_path / "spans"
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path / 'work.db'}")
    with Holdfast(os.environ["HOLDFAST_URL"]) as hf:
        jobs = [hf.job(name=f"traced_jobs.{name}")(lambda: None) for name in ("isolated", "threaded")]
        with trace.get_tracer("test").start_as_current_span("request") as request:
            for job in jobs:
                job.submit()
    subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", "traced_jobs:hf", "--drain"],
        cwd=PROGRAMS,
        env=os.environ | {"TEST_SPANS": str(spans), "PYTHONPATH": str(PROGRAMS)},
        timeout=90,
        check=True,
        capture_output=True,
    )
    found = {span["name"]: span for span in map(json.loads, spans.read_text().splitlines())}
    assert {span["trace"] for span in found.values()} == {trace_of(request)}
    for name, step in (("isolated", "isolated step"), ("threaded", "threaded step")):
        run, its_step = found[f"run traced_jobs.{name}"], found[f"step {step}"]
        assert (run["kind"], run["parent"]) == ("CONSUMER", id_of(request))
        assert its_step["parent"] == run["id"]
        assert (its_step["pid"] != run["pid"]) is (name == "isolated")
