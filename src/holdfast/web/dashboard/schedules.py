"""/schedules: what runs by the clock, what became of its last slots, and the next ones."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Request, Response

from holdfast.schedules import slots
from holdfast.support.errors import InvalidArguments
from holdfast.values.schedules import ScheduleInfo
from holdfast.values.workers import WorkerInfo, why_unserved
from holdfast.web.auth.authentication import Who
from holdfast.web.dashboard.flash import acted, said

if TYPE_CHECKING:
    from holdfast.web.site import Site

STRIP, LONG_STRIP, NEXT = 30, 200, 5
Name = Annotated[str, Form(max_length=200)]


def router(site: "Site") -> APIRouter:
    pages = site.resource()
    hf = site.hf

    def now() -> str:
        """What the field of a slot says before anyone has typed: this second, in UTC."""
        return f"{hf.clock.now().astimezone(UTC):%Y-%m-%dT%H:%M:%S}"

    def there(request: Request, name: str) -> str:
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
            hrefs={info.name: there(request, info.name) for info in found},
            slot_now=now(),
            said=said(request),
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
            said=said(request),
        )

    @pages.post("/schedules/trigger", name="holdfast.schedules.trigger")
    def trigger(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        schedule: Name = "",
        scheduled_for: Annotated[str, Form(max_length=40)] = "",
    ) -> Response:
        def do() -> str:
            slot_at = _instant(scheduled_for)
            run = hf.schedules.trigger(schedule, scheduled_for=slot_at, by=who.name)
            return f"Slot {slots.text(slot_at)} of {schedule} was triggered: run {run.id}."

        return acted(request, there(request, schedule), do)

    @pages.post("/schedules/pause", name="holdfast.schedules.pause")
    def pause(
        request: Request,
        who: Annotated[Who, Depends(site.operator)],
        schedule: Name = "",
        note: Annotated[str, Form(max_length=1000)] = "",
    ) -> Response:
        def do() -> str:
            hf.schedules.pause(schedule, note=note.strip() or None, by=who.name)
            return f"Schedule {schedule} is paused: no slot of it starts."

        return acted(request, there(request, schedule), do)

    @pages.post("/schedules/resume", name="holdfast.schedules.resume")
    def resume(request: Request, who: Annotated[Who, Depends(site.operator)], schedule: Name = "") -> Response:
        def do() -> str:
            hf.schedules.resume(schedule, by=who.name)
            return f"Schedule {schedule} goes on."

        return acted(request, there(request, schedule), do)

    return pages


def _unserved(alive: list[WorkerInfo], info: ScheduleInfo) -> str | None:
    return why_unserved(alive, info.queue, job=info.name)


def _instant(text: str) -> datetime:
    """A slot as the field gives it; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArguments(f"a slot is an instant like 2026-11-16T06:00:00, in UTC; not {text!r}") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
