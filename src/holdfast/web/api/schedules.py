"""/api/schedules: what runs by the clock, and what became of its slots."""
# No postponed annotations in files of endpoints: FastAPI could not see the `site` that they close over.

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from holdfast.values.pages import Page
from holdfast.values.schedules import ScheduleInfo, Slot
from holdfast.web.api.queues import Pause
from holdfast.web.api.shapes import Ask, Instant, Name, Run
from holdfast.web.auth.authentication import Who

if TYPE_CHECKING:
    from holdfast.web.site import Site

Few = Annotated[int, Query(ge=0, le=1000)]


class Trigger(Ask):
    scheduled_for: Instant = Field(
        description="The slot's own time, with its zone: the same one twice is refused.",
        examples=["2026-11-16T06:00:00Z"],
    )


def router(site: "Site") -> APIRouter:
    schedules = site.resource("/schedules", tags=["schedules"])
    hf = site.hf

    @schedules.get("", name="holdfast.api.schedules", summary="Every schedule, its last slot and its next")
    def list_schedules(who: Annotated[Who, Depends(site.viewer)]) -> Page[ScheduleInfo]:
        return Page.whole(hf.schedules.list())

    @schedules.get("/{name:path}/slots", name="holdfast.api.slots", summary="The last slots of a schedule and the next")
    def list_slots(name: Name, who: Annotated[Who, Depends(site.viewer)], last: Few = 20, next: Few = 5) -> Page[Slot]:
        """In order of time: those that are decided, then the next ones."""
        return Page.whole(hf.schedules.slots(name, last=last, next=next))

    @schedules.get("/{name:path}", name="holdfast.api.schedule", summary="One schedule")
    def get_schedule(name: Name, who: Annotated[Who, Depends(site.viewer)]) -> ScheduleInfo:
        return hf.schedules.get(name)

    @schedules.post(
        "/{name:path}/trigger", status_code=201, name="holdfast.api.trigger", summary="Claim a slot by hand"
    )
    def trigger_slot(name: Name, asked: Trigger, who: Annotated[Who, Depends(site.operator)]) -> Run:
        """The run of the slot. It passes the same claim as the scheduler's: a slot that is decided is refused, and so
        is one that an earlier run stands in the way of."""
        return Run.of(hf.schedules.trigger(name, scheduled_for=asked.scheduled_for, by=who.name).snapshot)

    @schedules.post("/{name:path}/pause", name="holdfast.api.pause_schedule", summary="Let no slot start")
    def pause_schedule(name: Name, asked: Pause, who: Annotated[Who, Depends(site.operator)]) -> ScheduleInfo:
        hf.schedules.pause(name, note=asked.note, by=who.name)
        return hf.schedules.get(name)

    @schedules.post("/{name:path}/resume", name="holdfast.api.resume_schedule", summary="Let slots start again")
    def resume_schedule(name: Name, who: Annotated[Who, Depends(site.operator)]) -> ScheduleInfo:
        """Those of the pause are late ones, and the schedule says what that means."""
        hf.schedules.resume(name, by=who.name)
        return hf.schedules.get(name)

    return schedules
