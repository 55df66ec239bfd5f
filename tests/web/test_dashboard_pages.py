"""The pages of pipelines, schedules, builds, keys, queues and workers, and their actions by role."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from tests.contract.helpers.workers import register
from tests.web.conftest import Server, serving

from holdfast import Context, Holdfast
from holdfast.testing import Manual
from holdfast.values.pipelines import StageInfo
from holdfast.web.dashboard import flash
from holdfast.web.dashboard.pipeline_graph import HEIGHT, WIDTH, layout

ASK = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without a worker: tests execute runs with `Manual`."""
    folder: Path = tmp_path_factory.mktemp("dashboard")
    with Holdfast(f"sqlite:///{folder / 'work.db'}", artifacts=folder / "artifacts") as hf:
        film = hf.pipeline("film")

        @film.stage()
        def script(ctx: Context, scenes: int) -> list[int]:
            return ctx.segments(list(range(scenes)))

        @film.stage(after=script, each="scenario")
        def audio(scenario: int) -> int:
            return 12 // (scenario - 2)

        @film.stage(after=audio)
        def cut(segments: list[int]) -> int:
            return len(segments)

        hf.job(name="keyed", key="{document}")(lambda document: document)
        hf.build(name="environment")(lambda configuration, fingerprint: configuration)
        hf.schedule("0 6 * * 1-5", tz="Europe/Berlin", name="reports/nightly")(lambda: None)
        with serving(hf) as server:
            yield server


def read(client: httpx.Client, path: str) -> str:
    answer = client.get(path, headers=ASK)
    assert answer.status_code == 200, answer.text
    return answer.text


def submit_form(client: httpx.Client, path: str, **fields: str) -> tuple[str, str]:
    """Submit a form; return the address that it redirects to, and the page there."""
    answer = client.post(path, data=fields, headers=ASK)
    assert answer.status_code == 303, answer.text
    there = answer.headers["location"]
    return there, read(client, there)


def test_a_pipeline_page_draws_stages_and_lists_segments_and_failures(web: Server) -> None:
    run = web.hf.jobs["film"].submit(scenes=4)
    Manual(web.hf).run_all()
    admin = web.client("admin", cookie=True)
    assert f'href="/pipelines/{run.id}"' in read(admin, "/pipelines?name=film&state=failed")
    assert "No matching pipelines" in read(admin, "/pipelines?name=nothing")
    page = read(admin, f"/pipelines/{run.id}")
    assert page.count('class="edge"') == 2
    assert page.count('id="cell-') == 4
    assert "ZeroDivisionError: " in page
    assert "audio[2]" in page
    assert "cell-ERROR cell-failed" in page
    assert "No more segments" in read(admin, f"/pipelines/{run.id}?stage=audio&after=9")
    # For an unknown stage, the page shows the first split stage.
    assert "Segments of audio" in read(admin, f"/pipelines/{run.id}?stage=%3Cscript%3E")


def test_a_pipeline_is_rerun_and_cancelled_from_its_page(web: Server) -> None:
    run = web.hf.jobs["film"].submit(scenes=2)
    operator = web.client("operator", cookie=True)
    there, page = submit_form(operator, f"/pipelines/{run.id}/rerun", from_stage="cut")
    assert there == f"/pipelines/{run.id}"
    assert "stage script has not ended" in page
    there, page = submit_form(operator, f"/pipelines/{run.id}/rerun")
    assert there != f"/pipelines/{run.id}"
    assert "It runs all stages again" in page
    _, page = submit_form(operator, f"{there}/cancel", reason="enough")
    assert "The pipeline is cancelled." in page
    assert operator.get("/pipelines/nothing", headers=ASK).status_code == 404


def test_a_schedule_is_described_triggered_paused_and_resumed(web: Server) -> None:
    operator = web.client("operator", cookie=True)
    page = read(operator, "/schedules")
    assert "At 06:00 on Monday through Friday, Europe/Berlin" in page
    assert 'href="/schedules/reports%2Fnightly"' in page
    refused = {"schedule": "reports/nightly", "scheduled_for": "2026-02-03T04:05:06"}
    assert "no worker is alive" in submit_form(operator, "/schedules/trigger", **refused)[1]
    Manual(web.hf).worker().register()
    there, page = submit_form(
        operator, "/schedules/trigger", schedule="reports/nightly", scheduled_for="2026-02-03T04:05:06"
    )
    assert there == "/schedules/reports%2Fnightly"
    assert "Triggered slot 2026-02-03T04:05:06Z of reports/nightly" in page
    assert "queued, by hand" in page
    again = {"schedule": "reports/nightly", "scheduled_for": "2026-02-03T05:05:06+01:00"}
    assert "is taken by run" in submit_form(operator, "/schedules/trigger", **again)[1]
    wrong = {"schedule": "reports/nightly", "scheduled_for": "tomorrow"}
    assert "a slot must be a time" in submit_form(operator, "/schedules/trigger", **wrong)[1]
    _, page = submit_form(operator, "/schedules/pause", schedule="reports/nightly", note="<b>closed</b>")
    assert "&lt;b&gt;closed&lt;/b&gt;" in page
    assert "<b>closed" not in page
    assert "is resumed" in submit_form(operator, "/schedules/resume", schedule="reports/nightly")[1]
    assert operator.get("/schedules/nothing", headers=ASK).status_code == 404


def test_a_build_page_lists_its_uses_and_can_rebuild(web: Server) -> None:
    hf, operator = web.hf, web.client("operator", cookie=True)
    request = hf.jobs["environment"].request(configuration="python", fingerprint="f" * 40)  # type: ignore[attr-defined]
    for document in ("a", "b", "c"):
        hf.jobs["keyed"].using(depends_on=[request]).submit(document=document)
    Manual(hf).run_all()
    build = hf.builds.get(request)
    page = read(operator, "/builds?state=ready&job=environment")
    assert '<td class="num" data-label="Used by">3</td>' in page
    assert "No matching builds" in read(operator, "/builds?state=failed")
    assert "configuration:python" in read(operator, f"/builds/{build.run_id}")
    _, page = submit_form(operator, f"/builds/{build.run_id}/invalidate", reason="a new index")
    assert "Stale since" in page
    assert "a new index" in page
    _, page = submit_form(operator, f"/builds/{build.run_id}/rebuild")
    assert "Rebuilding in run" in page
    assert page.count('id="history-') == 2


def test_a_key_page_names_holders_and_counts_waiting_runs(web: Server) -> None:
    hf = web.hf
    first, *_ = [hf.jobs["keyed"].submit(document="doc/1") for _ in range(3)]
    worker = Manual(hf).worker("worker-1")
    claims = worker.claim(limit=9)
    page = read(web.client("viewer"), "/keys")
    assert ">doc/1</a>" in page
    assert f'href="/runs/{first.id}"' in page
    assert ">2</a>" in page
    assert "No more keys" in read(web.client("viewer"), "/keys?after=~")
    for claim in claims:
        worker.finish(claim)


def test_operators_pause_limit_and_resume_queues(web: Server) -> None:
    operator, admin = web.client("operator", cookie=True), web.client("admin", cookie=True)
    _, page = submit_form(operator, "/queues/pause", queue="slow lane", note="the provider is down")
    assert "Queue slow lane is paused" in page
    assert "the provider is down" in page
    assert "limit-1" not in page, "an operator must not see the form for limits"
    refused = operator.post("/queues/limit", data={"queue": "slow lane", "concurrency": "2"}, headers=ASK)
    assert refused.status_code == 403
    _, page = submit_form(admin, "/queues/limit", queue="slow lane", max_queued="1,000", concurrency="2")
    assert "0 of 1,000" in page
    assert "0 of 2" in page
    assert (
        "a limit must be a whole number" in submit_form(admin, "/queues/limit", queue="slow lane", max_queued="many")[1]
    )
    assert "must be text of 1 to" in submit_form(operator, "/queues/pause", queue="")[1]
    assert "is resumed" in submit_form(operator, "/queues/resume", queue="slow lane")[1]
    submit_form(admin, "/queues/limit", queue="slow lane")


def test_workers_are_shown_with_their_runs_and_can_be_drained(web: Server) -> None:
    hf, operator = web.hf, web.client("operator", cookie=True)
    register(hf, "box:1:worker:<b>", version="0.0.1", expires_at=hf.clock.now() + timedelta(minutes=5))
    worker = Manual(hf).worker("lost-one")
    run = hf.jobs["keyed"].submit(document="drained")
    claims = worker.claim(limit=9)
    page = read(operator, "/workers")
    assert "box:1:worker:&lt;b&gt;" in page
    assert "Runs of lost workers" in page
    assert f'href="/runs/{run.id}"' in page
    _, page = submit_form(operator, "/workers/drain", worker="box:1:worker:<b>")
    assert "draining" in page
    assert "no live worker is called nobody" in submit_form(operator, "/workers/drain", worker="nobody")[1]
    [operation] = hf.audit_log(limit=1)
    assert (operation.by, operation.action, operation.details) == ("operator", "drain", {"worker": "box:1:worker:<b>"})
    for claim in claims:
        worker.finish(claim)


@pytest.mark.parametrize(
    "path",
    [
        "/queues/pause",
        "/queues/resume",
        "/schedules/trigger",
        "/schedules/pause",
        "/workers/drain",
        "/builds/x/rebuild",
    ],
)
def test_a_viewer_can_change_nothing_and_changes_need_a_csrf_token(web: Server, path: str) -> None:
    assert web.client("viewer", cookie=True).post(path, headers=ASK).status_code == 403
    forged = web.client("operator", cookie=True)
    forged.headers.pop("X-CSRF-Token")
    assert forged.post(path, headers=ASK).status_code == 403
    assert web.client().post(path).status_code == 401


def test_no_link_can_put_text_into_a_page(web: Server) -> None:
    viewer = web.client("viewer")
    for value in ("nonsense", "e30=", "bnVsbA=="):
        assert viewer.get("/queues", headers=ASK | {"Cookie": f"{flash.COOKIE}={value}"}).status_code == 200
    assert "taken" not in read(viewer, "/queues?said=taken&problem=taken")


def stage(name: str, *after: str) -> StageInfo:
    return StageInfo(
        name=name, version="1", run_id="r", state="NEW", ended=False, after=after, split=False, reused=False
    )


def test_a_diagram_places_every_stage_after_its_predecessors_without_overlap() -> None:
    stages = [stage("a"), stage("b", "a"), stage("c", "a"), stage("d", "b", "c"), stage("e", "a", "d"), stage("f")]
    picture = layout(stages)
    at = {node.stage.name: node for node in picture.nodes}
    assert all(at[before].x + WIDTH < at[one.name].x for one in stages for before in one.after)
    places = sorted((node.x, node.y) for node in picture.nodes)
    assert all(x != other_x or y + HEIGHT <= other_y for (x, y), (other_x, other_y) in pairwise(places))
    assert len(picture.edges) == 6
    assert max(node.x + WIDTH for node in picture.nodes) < picture.width
    assert max(node.y + HEIGHT for node in picture.nodes) < picture.height
    assert layout([]).nodes == ()
