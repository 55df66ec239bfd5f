"""`holdfast schedules`, given the URL of each kind of database, or an application."""

from __future__ import annotations

from datetime import timedelta

import pytest
from click.testing import Result
from tests.cli.conftest import Invoke, Shell, json_output
from tests.contract.helpers.workers import register

from holdfast import Holdfast
from holdfast.testing import FakeClock, Manual


def stderr_of(result: Result, code: int) -> str:
    """Check the exit code and that nothing is on standard output; return standard error."""
    assert (result.exit_code, result.stdout) == (code, "")
    return result.stderr.strip()


@pytest.fixture
def ingest(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """Schedule `ingest` with a missed slot, one that ran and one that failed; and a paused schedule `cleanup`."""
    fail = False

    @hf.schedule("*/15 * * * *", name="ingest", tz="Europe/Berlin", timeout=7200)
    def ingest() -> None:
        if fail:
            raise ValueError("no feed\nat all")

    hf.schedule(every=3600, name="cleanup")(lambda: None)
    manual.schedule()
    clock.advance(timedelta(minutes=31))
    manual.run_all()
    fail = True
    clock.advance(timedelta(minutes=15))
    manual.run_all()
    manual.worker().register()
    hf.schedules.pause("cleanup", note="[red]holiday[/red]\x1b[2J")


def test_schedules_are_listed_with_their_last_and_next_slots(holdfast: Invoke, url: str, ingest: None) -> None:
    shown = holdfast("schedules", "list", url)
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["NAME", "WHEN", "NEXT", "LOCAL", "LAST", "OUTCOME", "NOTE"]
    assert lines[1].split()[:5] == ["cleanup", "every", "1", "h", "paused"]
    assert "since 2026-01-01 00:46:00: [red]holiday[/red]\\x1b[2J" in lines[1]
    assert "*/15 * * * * Europe/Berlin" in lines[2]
    assert "2026-01-01 00:45:00  failed" in lines[2]
    assert "no worker has registered it since 2026-01-01 00:46:00" in lines[2]

    found = json_output(holdfast("schedules", "list", url, "--json"))["items"]
    assert [(one["name"], one["note"]) for one in found][1:] == [("ingest", None)]
    assert found[1]["last"]["outcome"] == "failed"


@pytest.mark.contract("S3")
def test_a_schedule_without_a_worker_for_its_queue_is_marked(holdfast: Invoke, url: str, live: Holdfast) -> None:
    """Uses the real clock, because the command compares it with the expiry times of workers."""
    live.schedule(every=3600, name="nightly", queue="night")(lambda: None)
    Manual(live).schedule()
    assert "no worker is alive" in holdfast("schedules", "list", url).stdout
    register(live, "w", jobs=["nightly"])
    assert "no live worker serves queue night" in holdfast("schedules", "list", url).stdout
    register(live, "v", jobs=["nightly"], queues=["night"])
    assert "no live worker" not in holdfast("schedules", "list", url).stdout


def test_slots_are_listed_with_their_outcomes(holdfast: Invoke, url: str, ingest: None) -> None:
    lines = holdfast("schedules", "slots", url, "ingest", "--next", "0").stdout.splitlines()
    assert lines[0].split() == ["SLOT", "LOCAL", "OUTCOME", "RUN", "TOOK", "NOTE"]
    assert [" ".join(line.split()[:6]) for line in lines[1:]] == [
        "2026-01-01 00:15:00 Thu 01:15 CET missed",
        "2026-01-01 00:30:00 Thu 01:30 CET ran",
        "2026-01-01 00:45:00 Thu 01:45 CET failed",
    ]
    assert "it was 0:16:00 late; misfire_grace is 0:05:00" in lines[1]
    assert "at all" in lines[3]

    found = json_output(holdfast("schedules", "slots", url, "ingest", "--last", "1", "--next", "2", "--json"))
    assert [slot["outcome"] for slot in found["slots"]] == ["failed", "upcoming", "upcoming"]


@pytest.mark.contract("J11")
def test_a_slot_is_triggered_manually_only_once(holdfast: Invoke, hf: Holdfast, url: str, ingest: None) -> None:
    run_id = holdfast("schedules", "trigger", url, "ingest", "2026-01-01T01:00:00+01:00").stdout.strip()
    assert hf.get(run_id).snapshot.kind == "slot"

    again = holdfast("schedules", "trigger", url, "ingest", "2026-01-01T00:00:00Z")
    assert stderr_of(again, 1) == (
        f"holdfast: slot_taken: slot 2026-01-01T00:00:00Z of schedule ingest is taken by run {run_id} (queued)"
    )
    assert "still_running" in stderr_of(holdfast("schedules", "trigger", url, "ingest", "now"), 1)
    hf.cancel(run_id)
    answer = json_output(holdfast("schedules", "trigger", url, "ingest", "now", "--json"))
    assert hf.why(answer["run_id"]).reasons[-1].endswith("of schedule ingest, triggered by hand")


def test_a_schedule_is_paused_and_resumed(holdfast: Invoke, hf: Holdfast, url: str, ingest: None) -> None:
    assert holdfast("schedules", "pause", url, "ingest", "--note", "why not").stdout == "ingest is paused\n"
    assert {one.name: one.note for one in hf.schedules.list()}["ingest"] == "why not"
    resumed = json_output(holdfast("schedules", "resume", url, "ingest", "--json"))
    assert resumed == {"schedule": "ingest", "state": "resumed"}
    assert {one.name: one.paused_at for one in hf.schedules.list()}["ingest"] is None


def test_an_empty_list_of_schedules_says_how_to_declare_one(holdfast: Invoke, hf: Holdfast, url: str) -> None:
    hf.start()
    assert "a worker registers the schedules of its code" in stderr_of(holdfast("schedules", "list", url), 0)


def test_the_slots_of_a_paused_schedule_mention_the_pause(holdfast: Invoke, url: str, ingest: None) -> None:
    shown = holdfast("schedules", "slots", url, "cleanup")
    assert "upcoming" not in shown.stdout
    assert shown.stderr.strip().endswith(
        "paused since 2026-01-01 00:46:00: [red]holiday[/red]\\x1b[2J; no slot starts until 'holdfast schedules resume'"
    )
    assert json_output(holdfast("schedules", "slots", url, "cleanup", "--json"))["paused_at"].startswith(
        "2026-01-01T00:46:00"
    )


def test_a_slot_triggered_early_is_not_listed_as_the_next_one(
    holdfast: Invoke, hf: Holdfast, url: str, ingest: None
) -> None:
    next_at = hf.schedules.get("ingest").next_at
    assert next_at is not None
    holdfast("schedules", "trigger", url, "ingest", next_at.isoformat())
    assert hf.schedules.get("ingest").next_at == next_at + timedelta(minutes=15)
    [upcoming] = hf.schedules.slots("ingest", last=0, next=1)
    assert upcoming.scheduled_for == next_at + timedelta(minutes=15)


def test_schedules_in_the_code_are_listed_before_a_worker_has_started(inside: Invoke, shell: Shell) -> None:
    (shell.folder / "clocks.py").write_text(
        "from holdfast import Holdfast\n"
        "hf = Holdfast()\n"
        "@hf.schedule('@daily', name='nightly', tz='Asia/Tokyo')\n"
        "def nightly() -> None: ...\n"
    )
    [_, line] = inside("schedules", "list", "clocks:hf").stdout.splitlines()
    assert line.startswith("nightly  0 0 * * * Asia/Tokyo  ")
    assert " 00:00 JST " in line
    assert line.endswith("no worker has registered it yet")
    assert stderr_of(inside("schedules", "slots", "clocks:hf", "nightyl"), 3).endswith("; did you mean nightly?")
    slots = inside("schedules", "slots", "clocks:hf", "nightly", "--next", "3").stdout.splitlines()[1:]
    assert [line.split()[5] for line in slots] == ["upcoming"] * 3
    [info] = json_output(inside("schedules", "list", "clocks:hf", "--json"))["items"]
    assert (info["last_seen_at"], info["evaluated_at"], info["tz"]) == (None, None, "Asia/Tokyo")
