"""The factory's site, from outside: what programs are told, what a browser shows, and who may do what."""

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
from PIL import Image
from playwright.sync_api import APIResponse, Browser, Page, Route, expect
from tests.apps.factory.plant import SCENES, SCRIPT, TINY, Plant
from tests.apps.serving import TOKEN, Site
from tests.browser.conftest import TELL_VIOLATIONS
from tests.process.support import gone, wait_for

PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    """A plant; its work is done by the tests themselves."""
    folder = tmp_path_factory.mktemp("shop")
    with Plant(f"sqlite:///{folder / 'work.db'}", folder / "plant", HOLDFAST_TOKEN=TOKEN, FACTORY_DEMO="true") as built:
        yield built


@pytest.fixture(scope="module")
def site(shop: Plant) -> Iterator[Site]:
    served = Site(shop.folder, "apps.factory.web:site", url=shop.url, settings=shop.environment)
    served.start()
    yield served
    served.kill()


@pytest.fixture(scope="module")
def address(site: Site) -> str:
    return site.address


@pytest.fixture(scope="module")
def program(site: Site) -> httpx.Client:
    return site.http


def test_a_program_hands_a_script_in_follows_it_edits_it_and_fetches_the_video(
    shop: Plant, program: httpx.Client
) -> None:
    content = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 80, 60)).save(content, "PNG")
    kept = program.post("/pictures/moon", files={"picture": ("moon.png", content.getvalue())})
    assert (kept.status_code, set(program.get("/pictures").json()["pictures"])) == (201, {"moon"})
    script = SCRIPT.replace("Then it falls again.", "Then it falls again.\n\n![the moon](moon)")
    handed = program.post("/videos", json={"script": script, "format": TINY})
    assert handed.status_code == 201
    there = handed.headers["location"]
    assert program.get(there).json()["stations"][0]["state"] == "NEW"
    shop.manual.orchestrate()
    assert program.get(there).json()["stations"][0]["state"] == "READY"

    shop.manual.run_all()
    found = program.get(there).json()
    assert (found["state"], found["ended"]) == ("succeeded", True)
    assert [one["state"] for one in found["stations"]] == ["DONE"] * 5
    assert [cell["title"] for cell in found["cells"]] == ["Tides", "The moon", "The code", "The end"]
    published = f"{there}/editions/1/files"
    video = program.get(f"{published}/video.mp4")
    assert (video.headers["content-type"], len(video.content)) == (
        "video/mp4",
        found["manifest"]["files"]["video.mp4"]["size"],
    )
    part = program.get(f"{published}/video.mp4", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, video.content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(video.content)}"
    assert program.get(f"{published}/video.mp4", headers={"Range": "bytes=99999999-"}).status_code == 416
    film = program.get(f"{there}/editions/1/segments/2/film.mp4", headers={"Range": "bytes=4-7"})
    assert (film.status_code, film.content) == (206, b"ftyp")
    assert program.get(f"{published}/manifest.json").json() == found["manifest"]

    again = program.post(f"{there}/editions", json={"script": script, "after": 1})
    assert (again.status_code, again.json()["edition"]) == (201, 2)
    shop.manual.run_all()
    assert [one["made"] for one in program.get(there).json()["stations"]] == [0] * 5
    late = program.post(f"{there}/editions", json={"script": script, "after": 1})
    assert (late.status_code, late.json()["code"]) == (409, "edited_meanwhile")
    jobs = program.get("/jobs").json()["jobs"]
    assert {(job["edition"], job["commit_state"]) for job in jobs} == {(1, "DONE"), (2, "DONE")}
    with program.stream("GET", f"{there}/events") as stream:
        told = "".join(stream.iter_text())
    assert "event: end" in told


@pytest.mark.contract("S4")
def test_the_engine_starts_no_run_that_is_no_edition(shop: Plant, program: httpx.Client) -> None:
    edition = shop.create(**TINY)
    shop.make(edition)
    [stage] = shop.rows(f"select id from holdfast_runs where parent_id = '{edition.run_id}' and stage = 'commit'")
    before = len(shop.rows("select 1 from holdfast_runs"))
    for path, body in (
        ("/runs", {"job": "factory.video", "args": {"scenes": [], "shape": {}, "video_id": "past", "edition": 1}}),
        (f"/runs/{edition.run_id}/again", None),
        ("/runs/again", {"job": "factory.video"}),
        (f"/pipelines/{edition.run_id}/rerun", {"from_stage": "commit"}),
    ):
        refused = program.post(f"/holdfast/api{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "only_from_code")
        assert program.get(refused.json()["start_at"]).json()["videos"]
    assert program.post(f"/holdfast/api/runs/{stage['id']}/again").status_code == 422, "it is a stage"
    assert len(shop.rows("select 1 from holdfast_runs")) == before


def test_what_is_wrong_is_told_with_a_code_and_changes_nothing(shop: Plant, program: httpx.Client) -> None:
    before = len(shop.rows("select 1 from editions"))
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
    nobody = program.post("/videos", json={"script": SCRIPT, "format": TINY | {"voice": "xx"}})
    assert (nobody.status_code, nobody.json()["code"]) == (422, "voice_unknown")
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
    assert len(shop.rows("select 1 from editions")) == before


def test_nothing_is_open_and_a_viewer_only_looks(shop: Plant, address: str) -> None:
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
    token = shop.hf.passes.add("viewer", role="viewer")
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


def test_the_demo_hands_the_sample_in_once_and_replaces_a_worker_that_was_killed(
    shop: Plant, program: httpx.Client
) -> None:
    demo = shop.start("apps.factory.demo", FACTORY_WORKERS="1")
    first = wait_for(lambda: program.get("/workers").json()["workers"], "a worker is alive")[0]
    assert first["host"] == socket.gethostname()
    assert program.post("/videos/sample/cancel").json()["state"] in ("cancelled", "running")
    assert program.post(f"/workers/{first['id']}/kill").json() == {"killed": first["pid"]}
    wait_for(lambda: gone(first["pid"]), "it is gone")
    again = program.post(f"/workers/{first['id']}/kill")
    assert again.status_code in (404, 409), "its number may be anyone's by now"
    second = wait_for(
        lambda: [one for one in program.get("/workers").json()["workers"] if one["pid"] != first["pid"]], "another is"
    )[0]
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(timeout=60) == 0
    assert gone(second["pid"])
    importlib.import_module("apps.factory.demo").hand_in()
    assert len(shop.rows("select 1 from editions where video_id = 'sample'")) == 1


def test_a_person_watches_a_video_being_made_and_plays_it(shop: Plant, address: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    context.add_init_script(TELL_VIOLATIONS)
    page = context.new_page()
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}/videos/new?token={TOKEN}")
    page.fill("#script", "# Only a title")
    page.click("text=Make it")
    expect(page.locator("#faults")).to_contain_text("a script has at least one scene")
    expect(page.locator("#faults")).to_contain_text("scene_missing")
    page.fill("#script", SCRIPT.replace("Tides", "<b>Ebb & flow</b>"))
    page.click("text=Make it")
    expect(page.locator("#station-script")).to_contain_text("waits", timeout=PATIENCE)
    shop.manual.orchestrate()
    expect(page.locator("#station-script")).to_contain_text("ready", timeout=PATIENCE)

    worker = shop.manual.worker("by hand", queues=["factory"])
    [claim] = worker.claim()
    expect(page.locator("#station-script")).to_contain_text("running", timeout=PATIENCE)
    expect(page.locator("#leases")).to_contain_text("by hand", timeout=PATIENCE)
    expect(page.locator("#leases [data-until]")).to_have_text(re.compile(r"^(\d+ s|it has run out)$"))
    worker.work(claim)
    shop.manual.orchestrate()
    expect(page.locator("h1")).to_contain_text("<b>Ebb & flow</b>", timeout=PATIENCE)
    expect(page.locator("#segments > li")).to_have_count(SCENES, timeout=PATIENCE)
    shop.manual.run_all()
    expect(page.locator("#station-commit")).to_contain_text("done", timeout=PATIENCE)
    expect(page.locator("#segments video")).to_have_count(SCENES)
    length = page.evaluate(
        """() => new Promise((done) => {
          const player = document.getElementById("player");
          const tell = () => done(player.error ? player.error.message : player.duration);
          if (player.readyState > 0 || player.error) tell();
          player.addEventListener("loadedmetadata", tell);
          player.addEventListener("error", tell);
        })"""
    )
    told = json.loads(_manifest(shop, page.url).read_text())
    # A Chromium without H.264 says so itself; it has read the file by ranges all the same.
    assert (isinstance(length, str) and "DEMUXER_ERROR" in length) or abs(length * 1000 - told["milliseconds"]) < 400
    assert [one for one in complaints if "422" not in one] == []

    phone = context.new_page()
    phone.set_viewport_size({"width": 390, "height": 844})
    for path in (page.url, f"{address}/videos", f"{address}/jobs", f"{page.url}/edit"):
        phone.goto(path)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, path
    context.close()


def test_a_video_that_has_ended_is_polled_no_more_and_its_page_is_on_the_screen_once(
    shop: Plant, address: str, browser: Browser
) -> None:
    handed = shop.create(**TINY)
    with _watching(browser) as watched:
        watched.page.goto(f"{address}/videos/{handed.video_id}?token={TOKEN}")
        watched.poll()
        wait_for(watched.swaps, "the page took over the answer to a poll")
        shop.manual.run_all()
        expect(watched.page.locator("#main > section #station-commit")).to_contain_text("done")
        wait_for(watched.rests, "the page has the answer to each poll, and asks no more")
        polls = len(watched.polls)
        watched.poll()
        watched.poll()
        assert watched.page.evaluate("fetch('/healthz').then((answer) => answer.status)") == 200
        assert len(watched.polls) == polls
        expect(watched.page.locator("main")).to_have_count(1)


def test_a_poll_that_is_answered_after_its_video_has_ended_does_not_put_the_page_into_itself(
    shop: Plant, address: str, browser: Browser
) -> None:
    handed = shop.create(**TINY)
    with _watching(browser) as watched:
        watched.page.goto(f"{address}/videos/{handed.video_id}?token={TOKEN}")
        watched.hold = True
        watched.poll()
        answered = "the server has answered a poll, and the page has not got it"
        wait_for(lambda: watched.looks() and watched.held, answered)
        before = watched.swaps()
        shop.manual.run_all()
        expect(watched.page.locator("#main > section #station-commit")).to_contain_text("done")
        expect(watched.page.locator("#leases[hx-trigger]")).to_have_count(0)
        watched.release()
        wait_for(lambda: watched.swaps() > before, "the page took over the answer that was held back")
        expect(watched.page.locator("main")).to_have_count(1)
        watched.poll()  # that answer was older than the page, so the page asks once more
        expect(watched.page.locator("#leases[hx-trigger]")).to_have_count(0)
        expect(watched.page.locator("main")).to_have_count(1)


def test_what_was_skipped_is_shown_as_new_with_the_reason(shop: Plant, address: str, browser: Browser) -> None:
    handed = shop.create("# Not wanted\n\n## Scene\n\nWords.\n", **TINY)
    shop.manual.orchestrate()
    worker = shop.manual.worker("by hand", queues=["factory"])
    worker.work(worker.claim()[0])
    shop.manual.orchestrate()
    shop.hf.cancel(handed.run_id, reason="wrong voice")
    shop.manual.orchestrate()
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{address}/videos/{handed.video_id}?token={TOKEN}")
    expect(page.locator("#station-script .state")).to_have_text("done")
    for stage in ("audio", "render"):
        expect(page.locator(f"#station-{stage} .state")).to_have_text("new")
        expect(page.locator(f"#station-{stage}")).to_contain_text("wrong voice")
    expect(page.locator(".cell-facts .state").first).to_have_text("new")
    page.goto(f"{address}/videos")
    expect(page.locator(f"#video-{handed.video_id} .state")).to_have_text(["cancelled", "done", *["new"] * 4])
    context.close()


def test_a_program_deletes_a_video_that_is_not_being_made(shop: Plant, program: httpx.Client) -> None:
    there = program.post("/videos", json={"script": SCRIPT, "format": TINY}).headers["location"]
    busy = program.delete(there)
    assert (busy.status_code, busy.json()["code"]) == (409, "video_busy")
    assert program.get(there).json()["state"] == "queued"
    assert program.post(f"{there}/cancel").json()["state"] == "cancelled"
    shop.manual.orchestrate()
    assert program.delete(there).status_code == 204
    gone = program.get(there)
    assert (gone.status_code, gone.json()["code"]) == (404, "video_not_found")
    assert program.delete(there).status_code == 404


def test_a_person_deletes_a_video_after_a_question(shop: Plant, address: str, browser: Browser) -> None:
    handed = shop.create("# Gone soon\n\n## Scene\n\nWords.\n", **TINY)
    shop.manual.run_all()
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{address}/videos/{handed.video_id}?token={TOKEN}")
    page.click("text=Delete…")
    expect(page.locator("dialog#delete")).to_contain_text("can't be undone")
    page.click("dialog#delete >> text=Back")
    expect(page.locator("dialog#delete")).not_to_be_visible()
    assert shop.rows("select 1 from videos where id = :id", id=handed.video_id)
    page.click("text=Delete…")
    page.click("dialog#delete >> text=Delete it")
    expect(page).to_have_url(re.compile(r"/videos$"))
    expect(page.locator(f"#video-{handed.video_id}")).to_have_count(0)
    assert not shop.rows("select 1 from videos where id = :id", id=handed.video_id)
    assert not (shop.output / handed.video_id).exists()

    cut_off = shop.create("# Cut off\n\n## Scene\n\nWords.\n", **TINY)
    shop.manual.run_all()
    with shop.tables.database().write() as session:
        session.get(shop.tables.Video, cut_off.video_id).deleting_at = shop.hf.clock.now()
    page.reload()
    expect(page.locator(f"#video-{cut_off.video_id}")).to_have_count(0)
    expect(page.locator("#deleting")).to_contain_text("Cut off")
    page.click("#deleting button")
    expect(page.locator("#deleting")).to_have_count(0)
    assert not shop.rows("select 1 from videos where id = :id", id=cut_off.video_id)
    context.close()


class Watched:
    """A page of a video whose polls a test counts and holds back.

    hold   whether to keep the answers to polls in `held`
    """

    def __init__(self, page: Page) -> None:
        self.page, self.hold = page, False
        self.polls: list[str] = []
        self.held: list[tuple[Route, APIResponse]] = []
        page.clock.install()
        page.add_init_script(COUNT_SWAPS)
        page.route("**/videos/*", self._asked)

    def poll(self) -> None:
        """Move the page's clock on by more than the time between two polls."""
        self.page.clock.run_for(2_500)

    def swaps(self) -> int:
        """How many answers to polls the page took over."""
        found: int = self.page.evaluate("window.swaps")
        return found

    def rests(self) -> bool:
        """Whether no poll is under way, and the section says that it needs none."""
        return self.swaps() == len(self.polls) and self.page.locator("#leases[hx-trigger]").count() == 0

    def looks(self) -> bool:
        """Let the browser's messages arrive."""
        return bool(self.page.evaluate("true"))

    def release(self) -> None:
        self.hold = False
        for route, answer in self.held:
            route.fulfill(response=answer)

    def _asked(self, route: Route) -> None:
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


def _manifest(built: Plant, url: str) -> Path:
    return built.output / url.rpartition("/")[2].partition("?")[0] / "1" / "manifest.json"
