"""Hostile text in every field that users or programs can fill is shown as text on every page."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from tests.contract.helpers.workers import register
from tests.web.conftest import Server, serving
from tests.web.parsed_page import Parsed, parse

from holdfast import Context, Holdfast, RunFailed, RunFilter
from holdfast.runs import events
from holdfast.values.events import Event

EVIL = "</pre></textarea><img src=x onerror=a() class=evil>\" ' onload=b() {{7*7}}"
CONTROLLING = ("\x1b", "\u202e", "\u2066", "\r\n")
FIELDS = (
    *("job", "queue", "key", "tag", "tag name", "argument", "argument name", "result", "error", "message", "step"),
    *("host", "worker", "version", "serves", "note", "by", "reason", "schedule", "pause", "pipeline"),
    *("segment", "segment error", "fingerprint", "scope", "reason", "progress", "filter"),
)
MOST_PAGES = 70
WORDS = ("title", "aria-label", "alt", "placeholder", "data-label")


def evil(field: str) -> str:
    """A hostile text that names its field, so that the test finds it on a page."""
    assert field in FIELDS
    return f"[{field}]{EVIL}{''.join(CONTROLLING)}."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    with Holdfast(f"sqlite:///{folder / 'work.db'}", artifacts=folder / "artifacts") as hf:
        fill(hf)
        with serving(hf) as server:
            yield server


def fill(hf: Holdfast) -> None:
    @hf.job(name=evil("job"), queue=evil("queue"))
    def work(ctx: Context, value: dict[str, str], fail: bool = False) -> str:
        logging.getLogger("app").warning(evil("message"))
        ctx.step(evil("step"), str, 1)
        ctx.artifact("page.html", EVIL.encode())
        ctx.artifact("page.txt", EVIL.encode())
        if fail:
            raise RuntimeError(evil("error"))
        return evil("result")

    hf.schedule("0 6 * * *", name=evil("schedule"))(lambda: None)
    hf.build(name="environment")(lambda scope, fingerprint: scope)
    film = hf.pipeline(evil("pipeline"))

    @film.stage()
    def script(ctx: Context) -> dict[str, int]:
        return ctx.segments({evil("segment"): 1})

    @film.stage(after=script, each="part", name="audio")
    def audio(part: int) -> None:
        raise RuntimeError(evil("segment error"))

    by = evil("by")
    given: dict[str, Any] = {"value": {evil("argument name"): evil("argument")}}
    job = work.using(tags={evil("tag name"): evil("tag")}, key=lambda **_: evil("key"))
    job.submit(**given)
    failing = job.submit(**given, fail=True)
    seen = film.submit()
    made = hf.submit("environment", scope=evil("scope"), fingerprint="<img/src=x/onerror=a()/class=evil>[fingerprint]")
    with hf.worker(queues=[evil("queue"), "default", "builds"]):
        for run in (failing, seen, made):
            with contextlib.suppress(RunFailed):
                run.result(30)
    waiting, progress = job.submit(**given), {"done": 1, "total": 2, "note": evil("progress")}
    hf.do(lambda tx: events.record(tx, [Event(run_id=waiting.id, kind="PROGRESS", data=progress)]))
    hf.cancel(job.submit(**given), reason=evil("reason"), by=by)
    hf.again(failing, by=by)
    hf.builds.invalidate(made, reason=evil("reason"), by=by)
    hf.queues.pause(evil("queue"), note=evil("note"), by=by)
    hf.schedules.pause(evil("schedule"), note=evil("pause"), by=by)
    hf.bulk.again(RunFilter(job=evil("filter")), by=by)
    lives = hf.clock.now().replace(year=2100)
    told = {"host": evil("host"), "version": evil("version"), "queues": [evil("serves")]}
    register(hf, evil("worker"), **told, expires_at=lives)


def pages_of(server: Server) -> Iterator[tuple[str, Parsed]]:
    """Every page that a link leads to, and every list filtered by hostile text."""
    client = server.client("admin", cookie=True, headers={"Accept": "text/html"})
    odd = {"q": EVIL, "job": EVIL, "key": EVIL, "error": EVIL, "state": EVIL, "after": EVIL, "stage": EVIL}
    asked = [f"{path}?{client.build_request('GET', '/', params=odd).url.query.decode()}" for path in PLACES]
    waiting, known = ["/", *asked], {"/", *asked}
    for _ in range(MOST_PAGES):
        if not waiting:
            return
        path = waiting.pop(0)
        answer = client.get(path, follow_redirects=True)
        assert answer.status_code < 500, path
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        page = parse(answer.text)
        yield path, page
        for link in sorted(page.links):
            there = urlsplit(urljoin(f"{server.url}{path}", link))
            found = f"{there.path}?{there.query}" if there.query else there.path
            if found not in known and not found.startswith(("/static", "/api")):
                known.add(found)
                waiting.append(found)


PLACES = ("/", "/runs", "/pipelines", "/schedules", "/builds", "/keys", "/queues", "/workers", "/runs/matching", "/no")


def test_hostile_text_in_every_field_is_shown_as_text(site: Server) -> None:
    text = ""
    for path, page in pages_of(site):
        assert page.unsafe_markup == [], path
        assert not [one for one in page.elements if "evil" in one[1].get("class", "").split()], path
        places = [page.text[max(0, at - 150) : at + 30] for each in CONTROLLING if (at := page.text.find(each)) >= 0]
        places += [
            f"{tag} {one}" for tag, one in page.elements for name in WORDS if CONTROLLING[1] in one.get(name, "")
        ]
        assert not places, path
        text += page.text
    assert [field for field in FIELDS if f"[{field}]" not in text] == []
