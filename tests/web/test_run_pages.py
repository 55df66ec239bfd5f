"""The overview, the list of runs and the page of a run: every state, any text, bounded queries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.web.conftest import TOKEN, Serve, Server, serving
from tests.web.parsed_page import Parsed, parse

from holdfast import Context, Holdfast
from holdfast.runs.finish import finish_runs
from holdfast.runs.outcomes import Cancelled, Failed, TimedOut
from holdfast.store.transaction import Transaction
from holdfast.testing import FakeClock, Manual
from holdfast.values.filters import RunFilter

TEMPLATE, EVALUATED = "{{99999*99999}}", "9999800001"  # a result that no page contains by chance
HOSTILE = (
    f"<script>alert(1)</script><img src=x onerror=alert(2)>\" ' \x1b[31mred\x07 \u202etxt.exe\u2066 \u2028 {TEMPLATE}"
)
STATES = ("queued", "running", "succeeded", "failed", "cancelled", "timed_out")


def application(url: str, folder: Any, clock: FakeClock) -> Holdfast:
    hf = Holdfast(url, artifacts=folder, clock=clock)

    @hf.job(name="documents.render", key="document_id")
    def render(ctx: Context, document_id: str, text: str = "") -> dict[str, str]:
        ctx.step("load template", str, 1)
        ctx.forget("load template")
        ctx.step("render pages", str, 1)
        ctx.artifact("report.txt", f"a report {text}".encode("utf-8", "backslashreplace"))
        ctx.artifact("cover.png", b"\x89PNG\r\n\x1a\n")
        ctx.artifact("data.bin", b"\x00\x01")
        return {"document": document_id, "text": text}

    @hf.job(name="documents.fail")
    def fail(text: str) -> None:
        try:
            raise KeyError("the first cause")
        except KeyError as error:
            raise RuntimeError(text) from error

    @hf.schedule("0 * * * *", name="documents.hourly")
    def hourly(ctx: Context) -> None: ...

    film = hf.pipeline("film")

    @film.stage()
    def script(ctx: Context, text: str) -> list[str]:
        return ctx.segments(text.split())

    @film.stage(after=script, each="segment")
    def audio(ctx: Context, segment: str) -> str:
        return segment

    return hf


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server with a run in every state, and the ids of the runs by name."""
    folder, clock = tmp_path_factory.mktemp("pages"), FakeClock()
    with application(f"sqlite:///{folder}/work.db", folder / "artifacts", clock) as hf, serving(hf) as server:
        yield server, fill(hf, clock)


def fill(hf: Holdfast, clock: FakeClock) -> dict[str, str]:
    manual, jobs = Manual(hf), hf.jobs
    worker = manual.worker("vm:1:worker", queues=("default",))
    made: dict[str, str] = {}
    made["pipeline"] = jobs["film"].submit(text="one two").id
    manual.run_all()
    made["succeeded"] = jobs["documents.render"].submit(document_id="doc-1", text=HOSTILE).id
    made["failed"] = jobs["documents.fail"].using(tags={"tenant": HOSTILE}).submit(text=HOSTILE).id
    manual.run_all()
    for state, outcome in (("timed_out", TimedOut("Timed out after 2 s")), ("long", Failed("x" * 5_000_000))):
        made[state] = jobs["documents.fail"].submit(text="late").id
        clock.advance(3)
        worker.finish(worker.claim()[0], outcome)
    made["cancelled"] = jobs["documents.fail"].submit(text="never").id
    hf.cancel(made["cancelled"], reason=HOSTILE, by="eve")
    made["running"] = jobs["documents.render"].submit(document_id="doc-2").id
    worker.claim()
    made["queued"] = jobs["documents.render"].submit(document_id="doc-2").id
    made["again"] = hf.again(made["failed"], by="eve").id
    worker.finish(worker.claim()[0], Cancelled("enough"))
    return made


def get(server: Server, path: str) -> tuple[httpx.Response, Parsed]:
    answer = server.client("operator").get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, f"{path}: {answer.text[:500]}"
    page = parse(answer.text)
    assert page.unsafe_markup == [], path
    return answer, page


def runs_in(page: Parsed) -> set[str]:
    """The ids of the runs in a list."""
    return {one["id"].removeprefix("run-") for one in page.all("tr") if one.get("id", "").startswith("run-")}


@pytest.mark.parametrize("state", STATES)
def test_a_run_in_every_state_has_a_page_and_is_listed_in_its_tab(
    site: tuple[Server, dict[str, str]], state: str
) -> None:
    server, made = site
    _, page = get(server, f"/runs/{made[state]}")
    assert any(f"state-{state}" in attributes.get("class", "") for attributes in page.all("span"))
    assert page.all("svg"), "the page must have a timeline"
    _, tab = get(server, f"/runs?state={state}")
    assert f"/runs/{made[state]}" in tab.links


def test_a_waiting_run_shows_why_and_a_running_one_shows_its_lease(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    _, waiting = get(server, f"/runs/{made['queued']}")
    assert "Why it is waiting" in waiting.text
    assert f"held by run {made['running']}" in waiting.text
    _, running = get(server, f"/runs/{made['running']}")
    assert "vm:1:worker" in running.text
    assert "expires" in running.text


def test_a_forgotten_step_is_marked(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    answer, page = get(server, f"/runs/{made['succeeded']}")
    assert "STEP_FORGOTTEN" in page.text
    assert "done, then forgotten" in answer.text, "the timeline must mark the forgotten step"
    assert answer.text.count('<span class="chip">forgotten</span>') == 1


def test_an_error_is_shown_as_a_chain_with_folded_tracebacks(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    _, page = get(server, f"/runs/{made['failed']}")
    assert page.text.index("RuntimeError") < page.text.index("caused by") < page.text.index("the first cause")
    assert len([one for one in page.all("details") if one.get("id", "").startswith("traceback")]) == 2


def test_a_pipeline_shows_its_stages_and_segments_in_order(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    _, page = get(server, f"/runs/{made['pipeline']}")
    places = [page.text.index(label) for label in ("script", "audio", "audio[0]", "audio[1]")]
    assert places == sorted(places)


def test_hostile_text_is_shown_as_text_on_every_run_page(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    for path in ("/", "/runs", "/runs?state=failed", *(f"/runs/{made[name]}" for name in ("succeeded", "failed"))):
        answer, page = get(server, path)
        for steering in ("\x1b", "\x07", "\u202e", "\u2066", "\u2028"):
            assert steering not in page.text, path
        assert EVALUATED not in answer.text, path
        assert not [one for one in page.all("img") if one.get("src") == "x"]
        assert len(answer.content) < 400_000
    _, failed = get(server, f"/runs/{made['failed']}")
    assert "<script>alert(1)</script>" in failed.text
    assert TEMPLATE in failed.text
    assert "\\x1b[31mred\\x07" in failed.text
    assert "\\u202etxt.exe\\u2066" in failed.text


def test_a_text_of_five_megabytes_is_cut_with_a_note(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    answer, page = get(server, f"/runs/{made['long']}")
    assert len(answer.content) < 500_000
    assert "more characters" in page.text


def test_only_text_and_images_have_previews(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    _, page = get(server, f"/runs/{made['succeeded']}")
    previews = {one["hx-get"].rsplit("/", 1)[1]: one["hx-get"] for one in page.all("summary") if "hx-get" in one}
    assert set(previews) == {"report.txt", "cover.png"}
    _, text = get(server, previews["report.txt"])
    assert "<script>alert(1)</script>" in text.text
    _, image = get(server, previews["cover.png"])
    [picture] = image.all("img")
    shown = server.client("viewer").get(picture["src"])
    assert shown.headers["content-type"] == "image/png"
    assert shown.headers["x-content-type-options"] == "nosniff"


def test_more_log_lines_are_loaded_from_the_cursor_of_the_page(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    client = server.client("viewer")
    first = client.get(f"/runs/{made['succeeded']}/log?after=0")
    assert first.status_code == 200
    again = client.get(f"/runs/{made['succeeded']}/log", params={"after": first.headers["holdfast-after"]})
    assert again.headers["holdfast-after"] == first.headers["holdfast-after"]
    assert parse(again.text).all("li") == []


def test_the_address_contains_the_whole_filter(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    _, page = get(server, "/runs?job=documents.render&arg=document_id%3Ddoc-2&key=document_id%3Adoc-2")
    assert {made["running"], made["queued"]} == runs_in(page)
    _, page = get(server, "/runs?error=THE+FIRST+CAUSE")
    assert runs_in(page) == {made["failed"]}
    _, page = get(server, "/runs?until=2020-01-01T00:00")
    assert runs_in(page) == set()
    assert "No matching runs" in page.text


def test_runs_of_pipelines_are_shown_on_request(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    _, page = get(server, "/runs")
    assert "film.audio" not in page.text
    assert made["pipeline"] in runs_in(page)
    _, page = get(server, "/runs?parts=1")
    assert "film.audio" in page.text


@pytest.mark.parametrize(
    "query", ["arg=nonsense", "since=yesterday", "state=asleep", "tag=none", "after=forged", "key=%00"]
)
def test_an_invalid_filter_is_explained_and_shows_no_runs(site: tuple[Server, dict[str, str]], query: str) -> None:
    _, page = get(site[0], f"/runs?{query}")
    assert any(one.get("role") == "alert" for one in page.all("p"))
    assert runs_in(page) == set()


def test_a_search_leads_to_the_run_the_job_or_the_key(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    client = server.client("viewer")
    led = {
        text: client.get("/runs", params={"q": text}).headers["location"]
        for text in (made["queued"], made["queued"][:20], "render", "doc/7&b=1", "")
    }
    assert led[made["queued"]] == f"/runs/{made['queued']}"
    assert led["render"] == "/runs?job=documents.render"
    assert led["doc/7&b=1"] == "/runs?key=doc%2F7%26b%3D1"
    assert led[""] == "/runs"


def test_every_link_leads_somewhere_under_a_prefix(tmp_path: Any) -> None:
    clock = FakeClock()
    with application(f"sqlite:///{tmp_path}/work.db", tmp_path / "artifacts", clock) as hf:
        made = fill(hf, clock)
        app = FastAPI()
        app.include_router(hf.router(admin_token=TOKEN), prefix="/deep/er")
        with serving(hf, app=app) as server:
            client = server.client("admin", headers={"Accept": "text/html"})
            seen: set[str] = set()
            paths = ["/deep/er/", "/deep/er/runs?state=failed"]
            for path in paths + [
                f"/deep/er/runs/{made[name]}" for name in ("pipeline", "succeeded", "failed", "queued")
            ]:
                page = parse(client.get(path).text)
                for link in page.links - seen:
                    seen.add(link)
                    address = httpx.URL(f"{server.url}{path}").join(link)
                    assert address.path.startswith("/deep/er/"), f"{path} leads to {link}"
                    answer = client.get(address)
                    assert answer.status_code < 400, f"{path} leads to {link}: {answer.status_code}"
                for form in page.all("form"):
                    assert form["action"].startswith("/deep/er/")
            assert len(seen) > 40


def test_operators_cancel_and_run_again_with_forms_that_viewers_do_not_see(serve: Serve, tmp_path: Any) -> None:
    clock = FakeClock()
    with application(f"sqlite:///{tmp_path}/work.db", tmp_path / "artifacts", clock) as hf:
        run = hf.jobs["documents.fail"].submit(text="x")
        found = serve(hf)
        viewer, operator = found.client("viewer", cookie=True), found.client("operator", cookie=True)
        page = parse(viewer.get(f"/runs/{run.id}").text)
        assert [form["action"] for form in page.all("form") if "cancel" in form["action"]] == []
        assert viewer.post(f"/runs/{run.id}/cancel").status_code == 403
        page = parse(operator.get(f"/runs/{run.id}").text)
        [form] = [form for form in page.all("form") if "cancel" in form["action"]]
        fields = {one["name"]: one.get("value", "") for one in page.all("input") if one.get("type") == "hidden"}
        del operator.headers["X-CSRF-Token"]
        assert operator.post(form["action"], data={"reason": "no token"}).status_code == 403
        assert hf.snapshot(run).state == "queued"
        answer = operator.post(form["action"], data={"csrf": fields["csrf"], "reason": "wrong file"})
        assert answer.headers["location"] == f"/runs/{run.id}"
        assert hf.snapshot(run).error == "wrong file"
        answer = operator.post(f"/runs/{run.id}/again", data={"csrf": fields["csrf"]})
        assert hf.snapshot(answer.headers["location"].rsplit("/", 1)[1]).again_of == run.id
        assert [one.by for one in hf.audit_log()] == ["operator", "operator"]


def test_without_javascript_a_confirmation_has_its_own_page(serve: Serve, tmp_path: Any) -> None:
    clock = FakeClock()
    with application(f"sqlite:///{tmp_path}/work.db", tmp_path / "artifacts", clock) as hf:
        run = hf.jobs["documents.fail"].submit(text="x")
        operator = serve(hf).client("operator", cookie=True, headers={"Accept": "text/html"})
        page = parse(operator.get(f"/runs/{run.id}").text)
        [asks] = [form["action"] for form in page.all("form") if form.get("id") == "asks"]
        buttons = {one["value"] for one in page.all("button") if one.get("form") == "asks" and one.get("name") == "ask"}
        assert buttons >= {"cancel-dialog", "again-dialog"}
        assert [one["id"] for one in page.all("dialog") if "open" in one] == []
        for name in buttons:
            opened = parse(operator.get(asks, params={"ask": name}).text)
            assert [one["id"] for one in opened.all("dialog") if "open" in one] == [name]
        whole = operator.get("/runs/matching?action=cancel").text
        part = operator.get("/runs/matching?action=cancel", headers={"HX-Request": "true"}).text
        assert "Cancel 1 run?" in parse(whole).text
        assert ("<main" in whole, "<main" in part) == (True, False)


def test_a_bulk_operation_shows_the_count_first_and_then_changes_exactly_those_runs(
    serve: Serve, tmp_path: Any
) -> None:
    clock = FakeClock()
    with application(f"sqlite:///{tmp_path}/work.db", tmp_path / "artifacts", clock) as hf:
        hf.jobs["documents.fail"].submit_many([{"text": str(number)} for number in range(7)])
        other = hf.jobs["documents.render"].submit(document_id="other")
        operator = serve(hf).client("operator", cookie=True)
        asked = parse(operator.get("/runs/matching?action=cancel&job=documents.fail").text)
        assert "Cancel 7 runs?" in asked.text
        fields = {one["name"]: one.get("value", "") for one in asked.all("input") if one["name"] != "q"}
        answer = operator.post("/runs/matching", data=fields | {"reason": "all of them"})
        assert answer.status_code == 303, answer.text
        manual = Manual(hf)
        [bulk] = hf.search(RunFilter(queue="operations")).items
        assert answer.headers["location"] == f"/runs/{bulk.id}"
        worker = manual.worker(queues=("operations",))
        worker.work(worker.claim()[0])
        assert {run.state for run in hf.search(RunFilter(job="documents.fail")).items} == {"cancelled"}
        assert hf.snapshot(other).state == "queued"
        refused = operator.post("/runs/matching", data=fields | {"filter": "[1"})
        assert refused.status_code == 422


def test_an_empty_overview_shows_the_first_commands(serve: Serve, tmp_path: Any) -> None:
    with Holdfast(f"sqlite:///{tmp_path}/work.db", clock=FakeClock()) as hf:
        found = serve(hf)
        _, page = get(found, "/")
        assert "holdfast worker app:hf" in page.text
        assert "holdfast submit app:hf" in page.text
        _, page = get(found, "/runs")
        assert "No runs yet" in page.text
        series = found.client("viewer").get("/overview/series?span=24h").json()
        assert len(series["at"]) == len(series["succeeded"]) == len(series["wait.p99"]) > 100


def test_the_number_of_queries_of_a_page_does_not_grow_with_the_number_of_finished_runs(
    serve: Serve, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages execute no statement per listed run and read no row per finished run."""
    asked: list[tuple[str, int]] = []
    read = Transaction.all

    def counted(self: Transaction, name: str, **parameters: Any) -> Any:
        rows = read(self, name, **parameters)
        asked.append((name, len(rows)))
        return rows

    clock = FakeClock()
    with application(f"sqlite:///{tmp_path}/work.db", tmp_path / "artifacts", clock) as hf:
        found = serve(hf)
        client = found.client("viewer")
        worker = Manual(hf).worker()
        told: list[dict[str, tuple[int, int]]] = []
        for many in (100, 2000):
            hf.jobs["documents.fail"].submit_many([{"text": str(number)} for number in range(many)])
            while claims := worker.claim(limit=500):
                pairs = [(claim.lease, Failed("no")) for claim in claims]
                hf.do(partial(finish_runs, done=pairs, holder=worker.name))
                clock.advance(1)
            ended = hf.search(RunFilter(state="failed"), limit=1).items[0]
            monkeypatch.setattr(Transaction, "all", counted)
            pages = ("/", "/runs", "/runs?state=failed", "/runs?job=documents.fail&error=nothing", f"/runs/{ended.id}")
            costs = {}
            for number, page in enumerate((*pages, "/overview/series")):
                asked.clear()
                assert client.get(page).status_code == 200
                costs[str(number)] = len(asked), max(rows for _, rows in asked)
            told.append(costs)
            monkeypatch.setattr(Transaction, "all", read)
        few, many_costs = told
        for page, (statements, rows) in many_costs.items():
            assert statements <= few[page][0] + 2, page
            assert statements <= 30, page
            assert rows <= 2000 if page in ("0", "5") else rows <= 60, (page, asked)


def test_a_group_of_failures_leads_to_the_runs_in_it(site: tuple[Server, dict[str, str]]) -> None:
    server, made = site
    _, page = get(server, "/")
    found: set[str] = set()
    for link in {link for link in page.links if "state=" in link and "job=" in link}:
        found |= runs_in(get(server, link)[1])
    assert found == {made["failed"], made["timed_out"], made["long"]}
