"""A row that can't be decoded is marked as unreadable: no list, page or command fails because of it.

The tests damage rows with raw SQL and then read every list, page and command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from tests.listing import runs_of
from tests.sample_app import declare
from tests.web.conftest import Serve, Server

from holdfast import Holdfast, Snapshot, Unreadable
from holdfast.cli import main
from holdfast.client import Client
from holdfast.runs.workers import register
from holdfast.testing import Manual
from holdfast.values.filters import RunFilter
from holdfast.values.workers import WorkerInfo

if TYPE_CHECKING:
    from tests.fixtures import Database

DEEP = "[" * 250 + "]" * 250
BROKEN = ("{broken", "", DEEP, '"a text"', "[[]]", "null", "{}", '{"x": "\\u0000"}', '{"x": "\\ud800"}', '{"retry": 5}')
COLUMNS = (
    "holdfast_runs set args",
    "holdfast_runs set tags",
    "holdfast_runs set policy",
    "holdfast_runs set depends_on",
    "holdfast_outcomes set result",
    "holdfast_steps set result",
    "holdfast_events set data",
    "holdfast_schedules set spec",
    "holdfast_workers set queues",
    "holdfast_workers set jobs",
)
INSTANTS = (
    "holdfast_runs set created_at",
    "holdfast_outcomes set started_at",
    "holdfast_outcomes set finished_at",
    "holdfast_waits set due_at",
    "holdfast_waits set entered_at",
    "holdfast_leases set started_at",
    "holdfast_leases set deadline_at",
    "holdfast_steps set started_at",
    "holdfast_steps set finished_at",
    "holdfast_events set happened_at",
    "holdfast_schedules set evaluated_at",
    "holdfast_schedules set paused_at",
    "holdfast_schedules set last_seen_at",
    "holdfast_slots set slot_at",
    "holdfast_slots set claimed_at",
    "holdfast_slots set coalesced_at",
    "holdfast_builds set created_at",
    "holdfast_builds set stale_at",
    "holdfast_artifacts set created_at",
    "holdfast_workers set started_at",
    "holdfast_workers set last_seen_at",
    "holdfast_queues set paused_at",
)


def damage(database: Database, column: str, text: str, where: str = "1 = 1") -> None:
    """Write this text into a column of every row, or of the rows that match `where`."""
    statement = f"update {column} = '{text}' where {where}"
    if column.startswith("holdfast_outcomes"):
        database.rewrite_outcomes(statement)
    else:
        assert database.run(statement) > 0


@pytest.fixture
def made(hf: Holdfast) -> dict[str, str]:
    """The ids of runs of each kind, by name; there are also a schedule, a worker, a held key and a paused queue."""

    declare(hf)
    jobs: Any = hf.jobs
    greet, film, environment = jobs["letters.greet"], jobs["film"], jobs["environments.install"]
    manual = Manual(hf)
    manual.schedule()
    manual.worker().register()
    request = environment.request(package="p", fingerprint="f")
    runs = {
        "ended": greet.using(tags={"tenant": "acme"}, depends_on=[request]).submit("Ada"),
        "pipeline": film.submit(text="one two"),
        "slot": hf.schedules.trigger("letters.daily", scheduled_for=datetime(2026, 1, 1, tzinfo=UTC), by="eve"),
    }
    manual.run_all()
    assert all(run.refresh().state == "succeeded" for run in runs.values())
    runs["running"] = greet.submit("Ada")
    manual.worker("vm:1:worker").claim()
    runs["waiting"] = greet.using(delay=60, depends_on=[runs["running"]]).submit("Ada")
    runs["ready"] = greet.submit("Ben")
    hf.queues.pause("later", note="not now")
    hf.do(lambda tx: register(tx, worker(tx.now)))
    ids = {name: run.id for name, run in runs.items()}
    stages = {stage.name: stage.run_id for stage in hf.pipelines.show(ids["pipeline"]).stages}
    [segment, *_] = [one.run_id for one in hf.pipelines.segments(ids["pipeline"], "audio")]
    return ids | stages | {"segment": segment, "build": hf.builds.get(request).run_id}


def worker(now: datetime) -> WorkerInfo:
    """A worker that has expired neither by the test's clock nor by the real clock that commands use."""
    return WorkerInfo(
        id="vm:2:worker",
        host="vm",
        pid=2,
        version="1",
        queues=["default"],
        jobs=["letters.greet"],
        concurrency=1,
        exclusive=None,
        started_at=now,
        last_seen_at=now,
        expires_at=now + timedelta(days=10_000),
        stopping=False,
    )


def lists(hf: Any, made: dict[str, str]) -> Iterator[object]:
    """Everything that can be listed from Python, with a Holdfast or a Client."""
    yield [hf.search(RunFilter()), hf.search(RunFilter(args={"name": "Ada"})), hf.counts()]
    yield [hf.search(RunFilter(state=state)) for state in ("queued", "running", "succeeded")]
    yield [hf.builds.list(), hf.builds.uses(hf.builds.list()), hf.pipelines.list()]
    yield hf.pipelines.progress(hf.pipelines.list())
    yield [hf.schedules.list(), hf.schedules.slots("letters.daily"), hf.keys.list(), hf.queues.list()]
    yield [hf.workers.list(), hf.workers.active_runs()]
    yield [hf.statistics.overview(), hf.statistics.failures(), hf.statistics.jobs()]
    for run_id in made.values():
        yield [hf.snapshot(run_id), hf.why(run_id), hf.timeline(run_id), hf.timeline_page(run_id), hf.steps(run_id)]
        yield hf.logs(run_id)
    for build in hf.builds.list():
        yield [hf.builds.get(build), hf.builds.history(build)]
    yield [hf.pipelines.show(made["pipeline"]), hf.artifacts.of(made["ended"])]


PAGES = ("/", "/runs", "/runs?arg=name%3DAda", "/builds", "/schedules", "/pipelines", "/queues", "/keys", "/workers")
API = ("runs", "runs?arg=name%3DAda", "builds", "schedules", "pipelines", "queues", "keys", "workers", "audit")
COMMANDS = (
    ("runs", "list", "--all"),
    ("builds", "list"),
    ("schedules", "list"),
    ("schedules", "slots", "letters.daily"),
    ("pipelines", "list"),
    ("queues", "list"),
    ("keys", "list"),
    ("workers", "list"),
)


def read_everything(hf: Holdfast, server: Server, made: dict[str, str]) -> None:
    """Read every list, page and command; none may fail."""
    for _ in lists(hf, made):
        pass
    with Client(server.url, token=server.token) as client:
        for _ in lists(client, made):
            pass
    web = server.client("operator")
    for path in (*PAGES, *(f"/runs/{one}" for one in made.values()), f"/pipelines/{made['pipeline']}"):
        page = web.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 200, f"{path}: {page.text[:2000]}"
    for path in (*API, *(f"runs/{one}" for one in made.values()), "schedules/letters.daily/slots"):
        answer = web.get(f"/api/{path}")
        assert answer.status_code == 200, f"{path}: {answer.text[:2000]}"
    for words in (*COMMANDS, *(("runs", "show", one) for one in made.values())):
        for options in ((), ("--json",)):
            result = CliRunner().invoke(main, [*words[:2], hf.settings.url, *words[2:], *options])
            assert result.exit_code == 0, f"{words}: {result.output} {result.exception!r}"


@pytest.mark.contract("S4")
@pytest.mark.timeout(480)
def test_rows_that_cannot_be_decoded_break_no_list(
    hf: Holdfast, database: Database, serve: Serve, made: dict[str, str]
) -> None:
    server = serve(hf)
    for text in BROKEN:
        for column in COLUMNS:
            damage(database, column, text)
        read_everything(hf, server, made)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)  # the other databases have timestamp columns
def test_instants_that_cannot_be_parsed_break_no_list(
    hf: Holdfast, database: Database, serve: Serve, made: dict[str, str]
) -> None:
    server = serve(hf)
    for text in ("", "long ago"):
        for column in INSTANTS:
            damage(database, column, text)
        read_everything(hf, server, made)


MARKED = ("runs", "builds", "schedules", "pipelines", "workers")


@pytest.mark.contract("S4")
def test_every_list_marks_the_rows_that_cannot_be_decoded(
    hf: Holdfast, database: Database, serve: Serve, made: dict[str, str]
) -> None:
    for column in COLUMNS:
        damage(database, column, "{broken")
    web = serve(hf).client("operator")
    for noun in MARKED:
        assert "unreadable: " in web.get(f"/{noun}", headers={"Accept": "text/html"}).text, noun
        assert "not JSON" in web.get(f"/api/{noun}").text, noun
        assert "unreadable: " in CliRunner().invoke(main, [noun, "list", hf.settings.url]).output, noun
    for path in ("audit", f"runs/{made['slot']}/events", f"runs/{made['ended']}/steps"):
        assert "unreadable: " in web.get(f"/api/{path}").text, path


def test_every_list_of_schedules_names_the_workers_with_another_definition(
    hf: Holdfast, serve: Serve, made: dict[str, str]
) -> None:
    hf.do(
        lambda tx: register(
            tx, replace(worker(tx.now), id="old:3", jobs=["letters.daily"], schedules={"letters.daily": "x"})
        )
    )
    server = serve(hf)
    web = server.client("operator")
    note = "different definition in worker old:3"
    assert hf.schedules.get("letters.daily").others == ("old:3",)
    with Client(server.url, token=server.token) as client:
        assert client.schedules.list() == hf.schedules.list()
    assert web.get("/api/schedules/letters.daily").json()["others"] == ["old:3"]
    for path in ("/schedules", "/schedules/letters.daily"):
        assert note in web.get(path, headers={"Accept": "text/html"}).text
    assert note in CliRunner().invoke(main, ["schedules", "list", hf.settings.url], env={"COLUMNS": "300"}).output


@pytest.mark.contract("S4")
def test_every_interface_shows_what_is_wrong_with_a_damaged_run(
    hf: Holdfast, database: Database, serve: Serve, made: dict[str, str]
) -> None:
    run_id = made["ready"]
    damage(database, "holdfast_runs set args", "{broken", where=f"id = '{run_id}'")
    server = serve(hf)
    web = server.client("operator")

    [found] = [run for run in runs_of(hf) if run.id == run_id]
    assert found.args.startswith("unreadable: not JSON")
    assert str(found.unreadable).startswith("args: not JSON")
    assert {run.unreadable for run in runs_of(hf) if run.id != run_id} == {None}
    assert hf.why(run_id).reasons[0].startswith("unreadable: args: not JSON")
    with Client(server.url, token=server.token) as client:
        assert client.snapshot(run_id) == found
    [row] = [run for run in web.get("/api/runs").json()["items"] if run["id"] == run_id]
    assert (row["unreadable"], row["args"]) == (found.unreadable, found.args)
    for path in ("/runs", f"/runs/{run_id}"):
        assert "unreadable: args: not JSON" in web.get(path, headers={"Accept": "text/html"}).text
    for words in (["runs", "list", hf.settings.url], ["runs", "show", hf.settings.url, run_id]):
        assert "unreadable: args" in CliRunner().invoke(main, words).output
    [listed] = [
        run
        for run in json.loads(CliRunner().invoke(main, ["runs", "list", hf.settings.url, "--json"]).output)["items"]
        if run["id"] == run_id
    ]
    assert listed.keys() == Snapshot.__dataclass_fields__.keys()
    assert listed["unreadable"] == found.unreadable


def test_a_damaged_result_is_marked_and_cannot_be_used(hf: Holdfast, database: Database, made: dict[str, str]) -> None:
    damage(database, "holdfast_outcomes set result", "{broken")
    run = hf.get(made["ended"])
    assert str(run.snapshot.unreadable).startswith("result: not JSON")
    with pytest.raises(Unreadable) as error:
        run.result()
    assert error.value.code == "unreadable"
    with pytest.raises(Unreadable):
        hf.again(run)
    assert hf.builds.get(made["build"]).unreadable == run.snapshot.unreadable


def test_a_search_by_argument_finds_the_undamaged_runs(hf: Holdfast, database: Database, made: dict[str, str]) -> None:
    texts = ("{broken", "", DEEP, '{"name": "Ada\\u0000"}', '{"name": "\\ud800"}', '{"name": null, "x": "\\u0000"}')
    damaged = [hf.submit("letters.greet", name=f"run {number}").id for number in range(len(texts))]
    for run_id, text in zip(damaged, texts, strict=True):
        damage(database, "holdfast_runs set args", text, where=f"id = '{run_id}'")
    found = {run.id for run in hf.search(RunFilter(args={"name": "Ada"})).items}
    assert found == {made[name] for name in ("ended", "running", "waiting")}
    assert hf.count(RunFilter(args={"name": "Ben"})).number == 1
