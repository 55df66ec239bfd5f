"""The factory's site over HTTP: the API, the pages in a browser, and who may do what."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from apps.factory.tests.instance import SCENES, SCRIPT, TINY, FactoryInstance
from apps.shared.tests.serving import TOKEN, Site
from PIL import Image
from playwright.sync_api import APIResponse, Browser, Page, Route, expect
from tests.browser.conftest import LOG_VIOLATIONS
from tests.process.support import gone, wait_for

PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FactoryInstance]:
    """A factory that the tests of this module share. It has no workers; the tests do the work themselves."""
    folder = tmp_path_factory.mktemp("factory")
    with FactoryInstance(
        f"sqlite:///{folder / 'work.db'}", folder / "factory", HOLDFAST_ADMIN_TOKEN=TOKEN, FACTORY_DEMO="true"
    ) as instance:
        yield instance


@pytest.fixture(scope="module")
def site(factory: FactoryInstance) -> Iterator[Site]:
    served = Site(factory.folder, "apps.factory.web:site", url=factory.url, settings=factory.environment)
    served.start()
    yield served
    served.kill()


@pytest.fixture(scope="module")
def address(site: Site) -> str:
    return site.address


@pytest.fixture(scope="module")
def program(site: Site) -> httpx.Client:
    return site.http


def test_a_program_submits_edits_and_downloads_a_video(factory: FactoryInstance, program: httpx.Client) -> None:
    content = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 80, 60)).save(content, "PNG")
    kept = program.post("/pictures/moon", files={"picture": ("moon.png", content.getvalue())})
    assert (kept.status_code, set(program.get("/pictures").json()["pictures"])) == (201, {"moon"})
    script = SCRIPT.replace("Then it falls again.", "Then it falls again.\n\n![the moon](moon)")
    submitted = program.post("/videos", json={"script": script, "format": TINY})
    assert submitted.status_code == 201
    url = submitted.headers["location"]
    assert program.get(url).json()["stages"][0]["state"] == "NEW"
    factory.manual.orchestrate()
    assert program.get(url).json()["stages"][0]["state"] == "READY"

    factory.manual.run_all()
    finished = program.get(url).json()
    assert (finished["state"], finished["ended"]) == ("succeeded", True)
    assert [one["state"] for one in finished["stages"]] == ["DONE"] * 5
    assert [segment["title"] for segment in finished["segments"]] == ["Tides", "The moon", "The code", "The end"]
    published = f"{url}/editions/1/files"
    video = program.get(f"{published}/video.mp4")
    assert (video.headers["content-type"], len(video.content)) == (
        "video/mp4",
        finished["manifest"]["files"]["video.mp4"]["size"],
    )
    part = program.get(f"{published}/video.mp4", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, video.content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(video.content)}"
    assert program.get(f"{published}/video.mp4", headers={"Range": "bytes=99999999-"}).status_code == 416
    film = program.get(f"{url}/editions/1/segments/2/film.mp4", headers={"Range": "bytes=4-7"})
    assert (film.status_code, film.content) == (206, b"ftyp")
    assert program.get(f"{published}/manifest.json").json() == finished["manifest"]

    again = program.post(f"{url}/editions", json={"script": script, "after": 1})
    assert (again.status_code, again.json()["edition"]) == (201, 2)
    factory.manual.run_all()
    assert [one["made"] for one in program.get(url).json()["stages"]] == [0] * 5
    late = program.post(f"{url}/editions", json={"script": script, "after": 1})
    assert (late.status_code, late.json()["code"]) == (409, "edited_meanwhile")
    jobs = program.get("/jobs").json()["jobs"]
    assert {(job["edition"], job["commit_state"]) for job in jobs} == {(1, "DONE"), (2, "DONE")}
    with program.stream("GET", f"{url}/events") as stream:
        events = "".join(stream.iter_text())
    assert "event: end" in events


@pytest.mark.contract("S4")
def test_holdfast_s_own_api_can_not_start_a_video(factory: FactoryInstance, program: httpx.Client) -> None:
    edition = factory.create(**TINY)
    factory.make(edition)
    [stage] = factory.rows(f"select id from holdfast_runs where parent_id = '{edition.run_id}' and stage = 'commit'")
    before = len(factory.rows("select 1 from holdfast_runs"))
    for path, body in (
        (
            "/runs",
            {"job": "factory.video", "args": {"scenes": [], "video_format": {}, "video_id": "past", "edition": 1}},
        ),
        (f"/runs/{edition.run_id}/again", None),
        ("/runs/again", {"job": "factory.video"}),
        (f"/pipelines/{edition.run_id}/rerun", {"from_stage": "commit"}),
    ):
        refused = program.post(f"/holdfast/api{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "only_from_code")
        assert program.get(refused.json()["start_at"]).json()["videos"]
    assert program.post(f"/holdfast/api/runs/{stage['id']}/again").status_code == 422, (
        "a stage can't run again by itself"
    )
    assert len(factory.rows("select 1 from holdfast_runs")) == before


def test_invalid_requests_get_a_code_and_change_nothing(factory: FactoryInstance, program: httpx.Client) -> None:
    before = len(factory.rows("select 1 from editions"))
    refused = program.post("/videos", json={"script": "# T\n\n## S\n\n1. no\n"})
    assert (refused.status_code, refused.json()["code"]) == (422, "script_invalid")
    assert [(fault["code"], fault["line"]) for fault in refused.json()["faults"]] == [
        ("narration_missing", 3),
        ("part_unknown", 5),
    ]
    for body in (
        {},
        {"script": 7},
        {"script": SCRIPT, "fromat": TINY},
        {"script": SCRIPT, "format": {"width": 3}},
        {"script": SCRIPT, "format": {"fps": 12}},
    ):
        answer = program.post("/videos", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), body
    unknown = program.post("/videos", json={"script": SCRIPT, "format": TINY | {"voice": "xx"}})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "voice_unknown")
    known = program.get("/videos").json()["videos"][0]["video_id"]
    wrong = [
        ("GET", "/videos/nothing", "video_not_found"),
        ("POST", "/videos/nothing/editions", "video_not_found"),
        ("DELETE", "/videos/nothing", "video_not_found"),
        ("DELETE", "/videos/a%00b", "video_not_found"),
        ("GET", "/videos/nothing/editions/1/files/video.mp4", "video_not_found"),
        ("GET", "/videos/%2e%2e/editions/1/files/work.db", "video_not_found"),
        ("GET", f"/videos/{known}?edition=2{'0' * 30}", "video_not_found"),
        ("GET", f"/videos/{known}/editions/2{'0' * 30}/files/video.mp4", "video_not_found"),
    ]
    for method, path, code in wrong:
        answer = program.request(method, path, json={"script": SCRIPT} if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (404, code)
    for name in ("..%2f..%2fwork.db", ".video.mp4.part", "nothing"):
        answer = program.get(f"/videos/{known}/editions/1/files/{name}")
        assert answer.status_code == 404
    not_one = program.post("/pictures/x", files={"picture": ("x.png", b"\x89PNG\r\n\x1a\nno")})
    assert (not_one.status_code, not_one.json()["code"]) == (422, "picture_invalid")
    assert len(factory.rows("select 1 from editions")) == before


def test_every_route_needs_a_token_and_a_viewer_can_change_nothing(factory: FactoryInstance, address: str) -> None:
    paths = [
        "/",
        "/videos",
        "/videos/x",
        "/videos/x/events",
        "/jobs",
        "/workers",
        "/pictures",
        "/videos/x/editions/1/files/y",
    ]
    with httpx.Client(base_url=address) as stranger:
        assert {stranger.get(path).status_code for path in paths} == {401}
    token = factory.hf.tokens.add("viewer", role="viewer")
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}) as viewer:
        for path in (
            "/videos",
            "/videos/x/editions",
            "/videos/x/cancel",
            "/videos/x/delete",
            "/pictures/x",
            "/workers/x/kill",
        ):
            assert viewer.post(path, json={"script": SCRIPT}).status_code == 403, path
        assert viewer.delete("/videos/x").status_code == 403
        assert viewer.get("/videos").status_code == 200


def test_the_demo_submits_the_sample_once_and_replaces_a_killed_worker(
    factory: FactoryInstance, program: httpx.Client
) -> None:
    demo = factory.start("apps.factory.demo", FACTORY_WORKERS="1")
    first = wait_for(lambda: program.get("/workers").json()["workers"], "a worker is alive")[0]
    assert first["host"] == socket.gethostname()
    assert program.post("/videos/sample/cancel").json()["state"] in ("cancelled", "running")
    assert program.post(f"/workers/{first['id']}/kill").json() == {"killed": first["pid"]}
    wait_for(lambda: gone(first["pid"]), "the killed worker is gone")
    again = program.post(f"/workers/{first['id']}/kill")
    assert again.status_code in (404, 409), "a dead worker can't be killed again"
    second = wait_for(
        lambda: [one for one in program.get("/workers").json()["workers"] if one["pid"] != first["pid"]],
        "another worker is alive",
    )[0]
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(timeout=60) == 0
    assert gone(second["pid"])
    importlib.import_module("apps.factory.demo").submit_sample()
    assert len(factory.rows("select 1 from editions where video_id = 'sample'")) == 1


def test_a_user_watches_a_video_being_made_and_plays_it(
    factory: FactoryInstance, address: str, browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    context.add_init_script(LOG_VIOLATIONS)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/videos/new?token={TOKEN}")
    page.fill("#script", "# Only a title")
    page.click("text=Make the video")
    expect(page.locator("#faults")).to_contain_text("a script needs at least one scene")
    expect(page.locator("#faults")).to_contain_text("scene_missing")
    page.fill("#script", SCRIPT.replace("Tides", "<b>Ebb & flow</b>"))
    page.click("text=Make the video")
    expect(page.locator("#stage-script")).to_contain_text("waiting", timeout=PATIENCE)
    factory.manual.orchestrate()
    expect(page.locator("#stage-script")).to_contain_text("ready", timeout=PATIENCE)

    worker = factory.manual.worker("by hand", queues=["factory"])
    [claim] = worker.claim()
    expect(page.locator("#stage-script")).to_contain_text("running", timeout=PATIENCE)
    expect(page.locator("#leases")).to_contain_text("by hand", timeout=PATIENCE)
    expect(page.locator("#leases [data-until]")).to_have_text(re.compile(r"^(\d+ s|expired)$"))
    worker.work(claim)
    factory.manual.orchestrate()
    expect(page.locator("h1")).to_contain_text("<b>Ebb & flow</b>", timeout=PATIENCE)
    expect(page.locator("#segments > li")).to_have_count(SCENES, timeout=PATIENCE)
    factory.manual.run_all()
    expect(page.locator("#stage-commit")).to_contain_text("done", timeout=PATIENCE)
    expect(page.locator("#segments video")).to_have_count(SCENES)
    length = page.evaluate(
        """() => new Promise((done) => {
          const player = document.getElementById("player");
          const resolve = () => done(player.error ? player.error.message : player.duration);
          if (player.readyState > 0 || player.error) resolve();
          player.addEventListener("loadedmetadata", resolve);
          player.addEventListener("error", resolve);
        })"""
    )
    manifest = json.loads(_manifest(factory, page.url).read_text())
    # A Chromium without H.264 reports DEMUXER_ERROR after it has requested parts of the file.
    assert (isinstance(length, str) and "DEMUXER_ERROR" in length) or abs(
        length * 1000 - manifest["milliseconds"]
    ) < 400
    assert [one for one in errors if "422" not in one] == []

    phone = context.new_page()
    phone.set_viewport_size({"width": 390, "height": 844})
    for path in (page.url, f"{address}/videos", f"{address}/jobs", f"{page.url}/edit"):
        phone.goto(path)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, path
    context.close()


def test_the_page_stops_polling_when_the_video_has_ended(
    factory: FactoryInstance, address: str, browser: Browser
) -> None:
    edition = factory.create(**TINY)
    with _watching(browser) as watched:
        watched.page.goto(f"{address}/videos/{edition.video_id}?token={TOKEN}")
        watched.poll()
        wait_for(watched.swaps, "the page shows the answer to a poll")
        factory.manual.run_all()
        expect(watched.page.locator("#main > section #stage-commit")).to_contain_text("done")
        wait_for(watched.has_stopped, "the page has the answer to each poll, and has stopped polling")
        polls = len(watched.polls)
        watched.poll()
        watched.poll()
        assert watched.page.evaluate("fetch('/healthz').then((answer) => answer.status)") == 200
        assert len(watched.polls) == polls
        expect(watched.page.locator("main")).to_have_count(1)


def test_a_late_answer_to_a_poll_does_not_nest_the_page_in_itself(
    factory: FactoryInstance, address: str, browser: Browser
) -> None:
    edition = factory.create(**TINY)
    with _watching(browser) as watched:
        watched.page.goto(f"{address}/videos/{edition.video_id}?token={TOKEN}")
        watched.hold = True
        watched.poll()
        wait_for(lambda: watched.dispatch() and watched.held, "the answer to a poll is held back")
        before = watched.swaps()
        factory.manual.run_all()
        expect(watched.page.locator("#main > section #stage-commit")).to_contain_text("done")
        expect(watched.page.locator("#leases[hx-trigger]")).to_have_count(0)
        watched.release()
        wait_for(lambda: watched.swaps() > before, "the page has handled the answer that was held back")
        expect(watched.page.locator("main")).to_have_count(1)
        watched.poll()  # the late answer contained the poll trigger, so the page polls once more
        expect(watched.page.locator("#leases[hx-trigger]")).to_have_count(0)
        expect(watched.page.locator("main")).to_have_count(1)


def test_skipped_stages_are_shown_as_new_with_the_reason(
    factory: FactoryInstance, address: str, browser: Browser
) -> None:
    edition = factory.create("# Not wanted\n\n## Scene\n\nWords.\n", **TINY)
    factory.manual.orchestrate()
    worker = factory.manual.worker("by hand", queues=["factory"])
    worker.work(worker.claim()[0])
    factory.manual.orchestrate()
    factory.hf.cancel(edition.run_id, reason="wrong voice")
    factory.manual.orchestrate()
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{address}/videos/{edition.video_id}?token={TOKEN}")
    expect(page.locator("#stage-script .state")).to_have_text("done")
    for stage in ("audio", "render"):
        expect(page.locator(f"#stage-{stage} .state")).to_have_text("new")
        expect(page.locator(f"#stage-{stage}")).to_contain_text("wrong voice")
    expect(page.locator(".segment-facts .state").first).to_have_text("new")
    page.goto(f"{address}/videos")
    expect(page.locator(f"#video-{edition.video_id} .state")).to_have_text(["cancelled", "done", *["new"] * 4])
    context.close()


def test_a_program_deletes_a_video_after_cancelling_it(factory: FactoryInstance, program: httpx.Client) -> None:
    url = program.post("/videos", json={"script": SCRIPT, "format": TINY}).headers["location"]
    busy = program.delete(url)
    assert (busy.status_code, busy.json()["code"]) == (409, "video_busy")
    assert program.get(url).json()["state"] == "queued"
    assert program.post(f"{url}/cancel").json()["state"] == "cancelled"
    factory.manual.orchestrate()
    assert program.delete(url).status_code == 204
    gone = program.get(url)
    assert (gone.status_code, gone.json()["code"]) == (404, "video_not_found")
    assert program.delete(url).status_code == 404


def test_a_user_deletes_a_video_after_confirming_it(factory: FactoryInstance, address: str, browser: Browser) -> None:
    edition = factory.create("# Draft\n\n## Scene\n\nWords.\n", **TINY)
    factory.manual.run_all()
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{address}/videos/{edition.video_id}?token={TOKEN}")
    page.click("text=Delete…")
    expect(page.locator("dialog#delete")).to_contain_text("can't be undone")
    page.click("dialog#delete >> text=Back")
    expect(page.locator("dialog#delete")).not_to_be_visible()
    assert factory.rows("select 1 from videos where id = :id", id=edition.video_id)
    page.click("text=Delete…")
    page.click("dialog#delete >> text=Delete video")
    expect(page).to_have_url(re.compile(r"/videos$"))
    expect(page.locator(f"#video-{edition.video_id}")).to_have_count(0)
    assert not factory.rows("select 1 from videos where id = :id", id=edition.video_id)
    assert not (factory.output / edition.video_id).exists()

    interrupted = factory.create("# Interrupted\n\n## Scene\n\nWords.\n", **TINY)
    factory.manual.run_all()
    with factory.tables.database().write() as session:
        session.get(factory.tables.Video, interrupted.video_id).deleting_at = factory.hf.clock.now()
    page.reload()
    expect(page.locator(f"#video-{interrupted.video_id}")).to_have_count(0)
    expect(page.locator("#deleting")).to_contain_text("Interrupted")
    page.click("#deleting button")
    expect(page.locator("#deleting")).to_have_count(0)
    assert not factory.rows("select 1 from videos where id = :id", id=interrupted.video_id)
    context.close()


class Watched:
    """The page of a video. A test can count its polls, and hold back the answers.

    hold   if true, the answers to polls are kept in `held`
    """

    def __init__(self, page: Page) -> None:
        self.page, self.hold = page, False
        self.polls: list[str] = []
        self.held: list[tuple[Route, APIResponse]] = []
        page.clock.install()
        page.add_init_script(COUNT_SWAPS)
        page.route("**/videos/*", self._on_request)

    def poll(self) -> None:
        """Advance the page's clock by more than the time between two polls."""
        self.page.clock.run_for(2_500)

    def swaps(self) -> int:
        """Return how many answers to polls the page has shown."""
        count: int = self.page.evaluate("window.swaps")
        return count

    def has_stopped(self) -> bool:
        """Return whether no poll is in progress, and the page has no trigger for another one."""
        return self.swaps() == len(self.polls) and self.page.locator("#leases[hx-trigger]").count() == 0

    def dispatch(self) -> bool:
        """Let Playwright handle pending messages of the browser."""
        return bool(self.page.evaluate("true"))

    def release(self) -> None:
        self.hold = False
        for route, answer in self.held:
            route.fulfill(response=answer)

    def _on_request(self, route: Route) -> None:
        if route.request.headers.get("hx-target") != "leases":
            return route.fallback()
        self.polls.append(route.request.url)
        if not self.hold:
            return route.fallback()
        self.held.append((route, route.fetch()))
        return None


COUNT_SWAPS = """
window.swaps = 0;
document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target.id === "leases") window.swaps += 1; });
"""


@contextlib.contextmanager
def _watching(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    yield Watched(context.new_page())
    context.close()


def _manifest(instance: FactoryInstance, url: str) -> Path:
    return instance.output / url.rpartition("/")[2].partition("?")[0] / "1" / "manifest.json"
