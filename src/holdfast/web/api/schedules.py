"""/api/schedules: list, trigger, pause and resume schedules, and list their slots."""
# No `from __future__ import annotations` in endpoint modules: FastAPI could not resolve the local name `site`.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.schedules import ScheduleInfo, Slot
from holdfast.web.api.queues import Pause
from holdfast.web.api.shapes import Instant, Name, RequestBody, Run
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

Few = Annotated[int, Query(ge=0, le=1000)]


class Trigger(RequestBody):
    scheduled_for: Instant = Field(
        description="The time of the slot, with its time zone. A slot that already has a run is refused.",
        examples=["2026-11-16T06:00:00Z"],
    )


def router(site: "Site") -> APIRouter:
    schedules = site.resource("/schedules", tags=["schedules"])
    hf = site.hf

    @schedules.get("", name="holdfast.api.schedules", summary="List schedules with their last and next slot")
    def list_schedules(who: Annotated[Who, Depends(site.viewer)]) -> Page[ScheduleInfo]:
        return Page.whole(hf.schedules.list())

    @schedules.get(
        "/{name:path}/slots", name="holdfast.api.slots", summary="List the past and next slots of a schedule"
    )
    def list_slots(name: Name, who: Annotated[Who, Depends(site.viewer)], last: Few = 20, next: Few = 5) -> Page[Slot]:
        """In order of time: past slots, then the next ones."""
        return Page.whole(hf.schedules.slots(name, last=last, next=next))

    @schedules.get("/{name:path}", name="holdfast.api.schedule", summary="Get a schedule")
    def get_schedule(name: Name, who: Annotated[Who, Depends(site.viewer)]) -> ScheduleInfo:
        return hf.schedules.get(name)

    @schedules.post("/{name:path}/trigger", status_code=201, name="holdfast.api.trigger", summary="Run a slot by hand")
    def trigger_slot(name: Name, body: Trigger, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """Returns the run of the slot. The slot is refused if it already has an outcome or a run, or if earlier runs
        use up `max_instances`."""
        return Run.of(hf.schedules.trigger(name, scheduled_for=body.scheduled_for, by=who.name).snapshot)

    @schedules.post("/{name:path}/pause", name="holdfast.api.pause_schedule", summary="Pause a schedule")
    def pause_schedule(name: Name, body: Pause, who: Annotated[Who, Depends(site.operator)]) -> ScheduleInfo:
        hf.schedules.pause(name, note=body.note, by=who.name)
        return hf.schedules.get(name)

    @schedules.post("/{name:path}/resume", name="holdfast.api.resume_schedule", summary="Resume a paused schedule")
    def resume_schedule(name: Name, who: Annotated[Who, Depends(site.operator)]) -> ScheduleInfo:
        """Slots that came due during the pause count as late. The schedule's options decide whether they still run."""
        hf.schedules.resume(name, by=who.name)
        return hf.schedules.get(name)

    return schedules
