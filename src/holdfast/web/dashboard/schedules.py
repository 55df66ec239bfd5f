"""/schedules: the list of schedules, and the page of one with its past and next slots."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from datetime import UTC
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request, Response

from holdfast.schedules import slots
from holdfast.values.schedules import ScheduleInfo
from holdfast.values.workers import WorkerInfo, why_unserved
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.filter_query import instant
from holdfast.web.dashboard.flash import act, flash

if TYPE_CHECKING:
    from holdfast.web.site import Site

STRIP, LONG_STRIP, NEXT = 30, 200, 5
Name = Annotated[str, Form(max_length=200)]


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    def now() -> str:
        """Return the initial value of the slot field: the current second, in UTC."""
        return f"{hf.clock.now().astimezone(UTC):%Y-%m-%dT%H:%M:%S}"

    def path_of(request: Request, name: str) -> str:
        return str(request.url_for("holdfast.schedule", name=quote(name, safe="")).path)

    @pages.get("/schedules", name="holdfast.schedules")
    def schedules(request: Request, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        found, alive = hf.schedules.list(), hf.workers.list()
        return site.render(
            request,
            who,
            "schedules.html",
            schedules=found,
            strips={info.name: hf.schedules.slots(info.name, last=STRIP, next=NEXT) for info in found},
            unserved={info.name: _unserved(alive, info) for info in found},
            hrefs={info.name: path_of(request, info.name) for info in found},
            slot_now=now(),
            flash=flash(request),
        )

    @pages.get("/schedules/{name:path}", name="holdfast.schedule")
    def schedule(request: Request, name: str, who: Annotated[Who, Depends(site.viewer)]) -> Response:
        info = hf.schedules.get(name)
        return site.render(
            request,
            who,
            "schedule.html",
            schedule=info,
            strip=hf.schedules.slots(name, last=LONG_STRIP, next=NEXT),
            unserved=_unserved(hf.workers.list(), info),
            slot_now=now(),
            flash=flash(request),
        )

    @pages.post("/schedules/trigger", name="holdfast.schedules.trigger")
    def trigger(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        schedule: Name = "",
        scheduled_for: Annotated[str, Form(max_length=40)] = "",
    ) -> Response:
        def do() -> str:
            slot_at = instant(scheduled_for, "a slot")
            run = hf.schedules.trigger(schedule, scheduled_for=slot_at, by=who.name)
            return f"Triggered slot {slots.text(slot_at)} of {schedule}: run {run.id}."

        return act(request, path_of(request, schedule), do)

    @pages.post("/schedules/pause", name="holdfast.schedules.pause")
    def pause(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        schedule: Name = "",
        note: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        def do() -> str:
            hf.schedules.pause(schedule, note=note.strip() or None, by=who.name)
            return f"Schedule {schedule} is paused: no slot starts until you resume it."

        return act(request, path_of(request, schedule), do)

    @pages.post("/schedules/resume", name="holdfast.schedules.resume")
    def resume(request: Request, who: Annotated[Who, Depends(site.operator)], schedule: Name = "") -> Response:
        def do() -> str:
            hf.schedules.resume(schedule, by=who.name)
            return f"Schedule {schedule} is resumed."

        return act(request, path_of(request, schedule), do)

    return pages


def _unserved(alive: list[WorkerInfo], info: ScheduleInfo) -> str | None:
    return why_unserved(alive, info.queue, job=info.name)
