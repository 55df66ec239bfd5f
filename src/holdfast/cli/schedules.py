"""holdfast schedules: list, trigger, pause and resume schedules, and show their slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import click
from rich.table import Table
from rich.text import Text

from holdfast.cli import completion, exit_codes, parameters, screen, targets
from holdfast.support import json_text
from holdfast.support.text import duration, plain
from holdfast.values.pages import Page
from holdfast.values.runs import last_line
from holdfast.values.schedules import ScheduleInfo, Slot
from holdfast.values.workers import WorkerInfo, why_unserved

STYLES = {
    "upcoming": "dim",
    "queued": "yellow",
    "running": "cyan",
    "ran": "green",
    "failed": "red",
    "skipped_timeout": "red",
    "missed": "red",
    "cancelled": "magenta",
    "skipped": "yellow",
    "coalesced": "dim",
}
UNSEEN = timedelta(hours=3)  # a live worker registers its schedules at least every hour


@click.group()
def schedules() -> None:
    """List, trigger, pause and resume schedules.

    \b
    holdfast schedules list app:hf
    holdfast schedules slots sqlite:///work.db rss_ingestion
    """


@schedules.command("list")
@parameters.target_argument()
@parameters.json_option
def list_(target: str, as_json: bool) -> int:
    """List schedules, each with its next and last slot.

    These are the schedules of the application and those that workers have registered.

    Times are UTC. LOCAL is the next slot in the schedule's own time zone.

    \b
    holdfast schedules list app:hf
    holdfast schedules list app:hf --json | jq '.items[].next_at'
    """
    with targets.resolve(target) as hf:
        found = hf.schedules.list()

        def table() -> Table:
            columns = ("NAME", "WHEN", "NEXT", "LOCAL", "LAST", "OUTCOME", "NOTE")
            alive = hf.workers.list()
            rows = [_schedule_row(info, hf.clock.now(), alive) for info in found]
            return screen.table(columns, rows, spare=("LAST", "OUTCOME", "LOCAL", "WHEN"))

        empty = "no schedules yet: a worker registers the schedules of its code when it starts"
        screen.listing(Page.whole(found), as_json=as_json, table=table, empty=empty)
        return exit_codes.OK


@schedules.command(short_help="Show the past slots with their outcomes, and the next slots.")
@parameters.target_argument()
@click.argument("name", shell_complete=completion.schedules)
@click.option("--last", type=click.IntRange(0, 1000), default=20, show_default=True, help="How many past slots.")
@click.option(
    "--next", "coming", type=click.IntRange(0, 1000), default=5, show_default=True, help="How many future slots."
)
@parameters.json_option
def slots(target: str, name: str, last: int, coming: int, as_json: bool) -> int:
    """Show the past slots of a schedule with their outcomes, then the next slots.

    Times are UTC. LOCAL is the slot in the schedule's own time zone.

    \b
    holdfast schedules slots app:hf rss_ingestion
    holdfast schedules slots app:hf rss_ingestion --last 100 --next 0 --json
    """
    with targets.resolve(target) as hf:
        info, found = hf.schedules.get(name), hf.schedules.slots(name, last=last, next=coming)
        if as_json:
            screen.document({"schedule": name, "tz": info.tz, "paused_at": info.paused_at, "slots": found})
            return exit_codes.OK
        if found:
            columns = ("SLOT", "LOCAL", "OUTCOME", "RUN", "TOOK", "NOTE")
            rows = [_slot_row(slot, info, hf.clock.now()) for slot in found]
            screen.show(screen.table(columns, rows, spare=("TOOK", "LOCAL")))
        else:
            screen.note("no slots")
        if info.paused_at is not None:
            since = _schedule_note(info, hf.clock.now())
            screen.note(f"paused {since}; no slot starts until 'holdfast schedules resume'")
        return exit_codes.OK


@schedules.command(short_help="Run a slot by hand.")
@parameters.target_argument()
@click.argument("name", shell_complete=completion.schedules)
@click.argument("slot", metavar="SLOT")
@parameters.json_option
def trigger(target: str, name: str, slot: str, as_json: bool) -> int:
    """Run a slot by hand and print the id of its run. SLOT is a time with its time zone, or `now`.

    The command fails with exit code 1 if the slot already has a run or an outcome, if too many runs of the schedule
    are unfinished, or if no live worker would start the run.

    \b
    holdfast schedules trigger app:hf rss_ingestion 2026-11-16T06:00:00Z
    holdfast schedules trigger app:hf rss_ingestion now
    """
    with targets.resolve(target) as hf:
        hf.start()
        at = hf.clock.now().replace(microsecond=0) if slot == "now" else _instant(slot)
        run = hf.schedules.trigger(name, scheduled_for=at, **targets.audit_fields(hf))
        screen.answer(
            {"schedule": name, "scheduled_for": at.astimezone(UTC), "run_id": run.id}, run.id, as_json=as_json
        )
        return exit_codes.OK


@schedules.command(short_help="Stop starting slots of a schedule.")
@parameters.target_argument()
@click.argument("name", shell_complete=completion.schedules)
@click.option("--note", help="The reason, shown with the schedule.")
@parameters.json_option
def pause(target: str, name: str, note: str | None, as_json: bool) -> int:
    """Stop starting slots of a schedule until it is resumed. Running runs continue.

    \b
    holdfast schedules pause app:hf rss_ingestion --note "the feed is down"
    """
    with targets.resolve(target) as hf:
        hf.schedules.pause(name, note=note, **targets.audit_fields(hf))
        _answer(name, "paused", as_json=as_json)
        return exit_codes.OK


@schedules.command(short_help="Resume a paused schedule.")
@parameters.target_argument()
@click.argument("name", shell_complete=completion.schedules)
@parameters.json_option
def resume(target: str, name: str, as_json: bool) -> int:
    """Resume a paused schedule.

    Slots that came due during the pause count as late. The schedule's options decide whether they still run.

    \b
    holdfast schedules resume app:hf rss_ingestion
    """
    with targets.resolve(target) as hf:
        hf.schedules.resume(name, **targets.audit_fields(hf))
        _answer(name, "resumed", as_json=as_json)
        return exit_codes.OK


def _answer(name: str, state: str, *, as_json: bool) -> None:
    screen.answer({"schedule": name, "state": state}, f"{plain(name)} is {state}", as_json=as_json)


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a time; write 2026-11-16T06:00:00Z, or now", param_hint="SLOT"
        ) from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no time zone; write 2026-11-16T06:00:00Z for UTC", param_hint="SLOT")
    return at


def _schedule_row(info: ScheduleInfo, now: datetime, alive: Sequence[WorkerInfo]) -> list[str | Text]:
    unserved = why_unserved(alive, info.queue, job=info.name)
    return [
        screen.short(info.name, 40),
        screen.short(info.trigger, 40),
        Text("paused", style="yellow") if info.paused_at else screen.instant(info.next_at),
        _local(info.next_at, info),
        screen.instant(info.last.scheduled_for) if info.last else "",
        _outcome(info.last.outcome) if info.last else "",
        screen.short("; ".join(_warnings(info)) or _schedule_note(info, now) or unserved or "", 100),
    ]


def _warnings(info: ScheduleInfo) -> Iterator[str]:
    if info.unreadable is not None:
        yield json_text.marker(info.unreadable)
    if info.others:
        yield f"different definition in worker {', '.join(info.others)}"


def _schedule_note(info: ScheduleInfo, now: datetime) -> str:
    if info.paused_at is not None:
        return f"since {screen.instant(info.paused_at)}" + (f": {info.note}" if info.note else "")
    if info.last_seen_at is None:
        return "no worker has registered it yet"
    if now - info.last_seen_at > UNSEEN:
        return f"no worker has registered it since {screen.instant(info.last_seen_at)}"
    return ""


def _local(at: datetime | None, info: ScheduleInfo) -> str:
    """Return a slot in the schedule's own time zone, such as `Thu 01:15 CET`, or nothing if that is UTC."""
    if at is None or info.tz in (None, "UTC"):
        return ""
    there = at.astimezone(ZoneInfo(info.tz))
    return there.strftime("%a %H:%M:%S %Z" if there.second else "%a %H:%M %Z")


def _slot_row(slot: Slot, info: ScheduleInfo, now: datetime) -> list[str | Text]:
    took = duration((slot.finished_at or now) - slot.started_at) if slot.started_at is not None else ""
    return [
        screen.instant(slot.scheduled_for),
        _local(slot.scheduled_for, info),
        _outcome(slot.outcome),
        slot.run_id or "",
        took,
        screen.short(_slot_note(slot), 100),
    ]


def _slot_note(slot: Slot) -> str:
    parts = [
        "by hand" if slot.manual else "",
        slot.reason or "",
        last_line(slot.error or ""),
    ]
    return "; ".join(part for part in parts if part)


def _outcome(name: str) -> Text:
    return Text(name, style=STYLES.get(name, ""))
