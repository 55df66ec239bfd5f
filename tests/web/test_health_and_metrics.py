"""Health checks and metrics over HTTP."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.web.conftest import serving

from holdfast import Holdfast
from holdfast.testing import FakeClock, Manual
from holdfast.web.api import health
from holdfast.web.metrics import METRICS

if TYPE_CHECKING:
    from tests.web.conftest import Server

HOSTILE = 'a"b\\c\nd\re{f="g"}\u202e<b>\x1b[31m'
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "metrics.md"


@pytest.fixture(autouse=True)
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the cache of health checks."""
    monkeypatch.setattr(health, "LASTS", 0)


def test_health_checks_need_no_token(shared: Server) -> None:
    client = shared.client()
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "reasons": []})


def test_a_worker_that_stopped_polling_makes_the_process_unready_but_not_unhealthy(shared: Server) -> None:
    hf = shared.hf
    with hf.worker():
        assert shared.client().get("/readyz").status_code == 200
    hf.polls["host:1:worker:00"] = hf.clock.elapsed() - 60
    try:
        answer = shared.client().get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["status"] == "not ready"
        assert "worker host:1:worker:00 has not polled for 6" in answer.json()["reasons"][0]
        assert shared.client().get("/healthz").status_code == 200
    finally:
        del hf.polls["host:1:worker:00"]


def test_an_unavailable_database_is_reported_without_details(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with Holdfast(f"sqlite:///{path}", busy_timeout=0.2) as hf, serving(hf) as server:
        hf.start()
        hf.store.close()
        path.unlink()
        path.mkdir()
        answer = server.client().get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["reasons"] == ["the database does not answer (store_unavailable)"]
        assert server.client().get("/healthz").status_code == 200


def test_metrics_need_the_token_of_a_viewer(shared: Server) -> None:
    assert shared.client().get("/metrics").status_code == 401
    answer = shared.client("viewer").get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")


def test_a_setting_opens_metrics_to_this_machine_but_not_through_a_proxy(tmp_path: Path) -> None:
    with Holdfast(f"sqlite:///{tmp_path / 'work.db'}", metrics_public=True) as hf, serving(hf) as server:
        client = server.client()
        assert client.get("/metrics").status_code == 200
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
            assert client.get("/metrics", headers={header: "203.0.113.7"}).status_code == 401
        assert client.get("/api/runs").status_code == 401


def test_metrics_are_correct_with_any_job_and_queue_names(tmp_path: Path) -> None:
    clock = FakeClock()
    with Holdfast(f"sqlite:///{tmp_path / 'work.db'}", clock=clock) as hf, serving(hf) as server:

        @hf.job(name=HOSTILE, queue=HOSTILE)
        def work(n: int) -> None:
            if n:
                raise ValueError(n)

        manual = Manual(hf)
        for n in range(3):
            work.submit(n=n)
        clock.advance(2)
        manual.run_all()
        clock.advance(20)
        manual.count_ended()
        work.submit(n=0)
        hf.queues.pause(HOSTILE)
        clock.advance(5)
        for name, label in (("queue_rejected", HOSTILE), ("lease_lost", ""), ("slot_missed", "news")):
            hf.store.counters.add(name, label)
        hf.store.counters.flush(at_once=True)
        text = server.client("viewer").get("/metrics").text

    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    where = (("job", HOSTILE), ("queue", HOSTILE))
    assert samples["holdfast_runs_total", (*where, ("state", "failed"))] == 2
    assert samples["holdfast_runs_total", (*where, ("state", "succeeded"))] == 1
    assert samples["holdfast_queue_depth", (("place", "ready"), ("queue", HOSTILE))] == 1
    assert samples["holdfast_oldest_waiting_seconds", (("queue", HOSTILE),)] == 5
    assert samples["holdfast_queue_paused", (("queue", HOSTILE),)] == 1
    assert samples["holdfast_queue_rejections_total", (("queue", HOSTILE),)] == 1
    assert samples["holdfast_slots_missed_total", (("schedule", "news"),)] == 1
    assert samples["holdfast_lease_losses_total", ()] == 1
    assert samples["holdfast_takeovers_total", ()] == 0
    waits = {
        dict(labels)["le"]: value for (name, labels), value in samples.items() if name.endswith("wait_seconds_bucket")
    }
    assert (waits["1.024"], waits["4.096"], waits["+Inf"]) == (0, 3, 3)
    assert list(waits.values()) == sorted(waits.values())
    assert samples["holdfast_wait_seconds_sum", where] == pytest.approx(6)
    assert {family.name for family in text_string_to_metric_families(text)} == {
        name.removesuffix("_total") for name in METRICS
    }


def test_the_metrics_page_documents_every_metric() -> None:
    row = re.compile(r"^\| `(holdfast_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", re.MULTILINE)
    documented = {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)), what)
        for name, kind, labels, what in row.findall(PAGE.read_text())
    }
    assert documented == {one.name: (one.kind, one.labels, one.help) for one in METRICS.values()}
