"""Event streams: everything once, from any cursor on, whoever reads slowly or leaves."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import Database
from tests.web.conftest import TOKEN, Serve, Server
from tests.web.wire import STREAM, Sent, sent, whole

from holdfast import Context, Holdfast, Retry, StoreUnavailable
from holdfast.runs.events import record
from holdfast.testing import Manual
from holdfast.values.events import Event


def prepared(hf: Holdfast) -> Manual:
    @hf.job(name="work", max_attempts=2, retry=Retry(delay=0))
    def work(ctx: Context, fail_first: bool = False) -> int:
        ctx.step("read", lambda: 1)
        ctx.progress(0.5)
        if fail_first and ctx.attempt == 1:
            raise ValueError("once")
        ctx.step("write", lambda: 2)
        return 3

    return Manual(hf)


def test_a_stream_tells_the_whole_story_from_every_cursor_on_without_gap_or_repeat(hf: Holdfast, server: Serve) -> None:
    manual = prepared(hf)
    run = hf.submit("work", fail_first=True)
    manual.run_all()
    client = server(hf).client("viewer")
    path = f"/api/runs/{run.id}/events"
    *events, end = whole(client, path)
    assert (end.event, end.id) == ("end", None)
    assert [event.id for event in events] == [cursor for cursor, _ in hf.news(run.id).events]
    assert Counter(event.told["kind"] for event in events) == Counter(event.kind for event in hf.story(run.id))
    for number, event in enumerate(events[:-1]):
        assert whole(client, path, after=event.id)[:-1] == events[number + 1 :]
    with client.stream("GET", path, headers=STREAM | {"Last-Event-ID": str(events[-1].id)}) as answer:
        assert answer.status_code == 204  # or a browser would come back for ever
    assert [one.event for one in whole(client, f"{path}?after={events[-1].id}")] == ["end"]


def test_a_stream_of_no_run_or_from_no_cursor_is_refused(shared: Server) -> None:
    client = shared.client("viewer")
    assert client.get("/api/runs/none/events", headers=STREAM).json()["code"] == "run_not_found"

    @shared.hf.job(name="nothing")
    def nothing() -> None: ...

    run = shared.hf.submit("nothing")
    wrong = client.get(f"/api/runs/{run.id}/events?after=nonsense", headers=STREAM)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_arguments")
    assert shared.client().get(f"/api/runs/{run.id}/events", headers=STREAM).status_code == 401


@contextlib.contextmanager
def reading(client: httpx.Client, path: str, **headers: str) -> Iterator[Iterator[Sent]]:
    with client.stream("GET", path, headers=STREAM | headers, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        yield sent(answer.iter_lines())


def test_events_come_as_they_happen_to_a_stream_and_to_a_long_poll(live: Holdfast, server: Serve) -> None:
    began, go_on = threading.Event(), threading.Event()

    @live.job(name="slow")
    def slow(ctx: Context) -> None:
        ctx.step("first", lambda: 1)
        began.set()
        go_on.wait(60)

    client = server(live).client("viewer")
    run = live.submit("slow")
    path = f"/api/runs/{run.id}/events"
    queued = client.get(path).json()
    assert [event["kind"] for event in queued["events"]] == ["RUN_QUEUED"]
    polled: list[dict[str, Any]] = []
    ask = {"after": queued["next"], "wait": 20}
    asking = threading.Thread(target=lambda: polled.append(client.get(path, params=ask).json()))
    asking.start()
    with reading(client, path) as events, live.worker():
        assert next(events).told["kind"] == "RUN_QUEUED"
        assert began.wait(60)
        kinds = []
        while "STEP_FINISHED" not in kinds:  # told while the run goes on
            kinds.append(next(events).told["kind"])
        go_on.set()
        kinds += [event.told["kind"] for event in events if event.event == "message"]
    asking.join(60)
    assert polled[0]["events"][0]["kind"] == "RUN_STARTED"
    assert kinds == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_SUCCEEDED"]


def test_events_of_all_runs_are_told_in_the_order_of_their_commits(postgres_url: str, server: Serve) -> None:
    database = Database(postgres_url)
    with Holdfast(postgres_url) as hf:
        hf.start()
        client = server(hf).client("viewer")
        insert = (
            "insert into holdfast_events (run_id, kind, data, happened_at) values (null, 'LOG', '{{\"n\": {}}}', now())"
        )
        with contextlib.closing(database.connect()) as early, reading(client, "/api/events") as events:
            database.begin(early)
            early.execute(insert.format(1))  # has its number, and is not committed
            database.run(insert.format(2))
            told: list[int] = []
            reader = threading.Thread(target=lambda: told.extend(next(events).told["data"]["n"] for _ in range(2)))
            reader.start()
            # Everything in between is looked at at least twice before the one that began first ends.
            reader.join(2.5)
            assert told == []
            early.execute("commit")
            reader.join(60)
        assert sorted(told) == [1, 2]
        assert [event.data["n"] for _, event in hf.events(kinds=["LOG"]).events] == told


def test_a_page_is_told_that_something_changed_and_not_too_often(shared: Server) -> None:
    @shared.hf.job(name="changing")
    def changing() -> None: ...

    run = shared.hf.submit("changing")
    client = shared.client("viewer", cookie=True)
    with reading(client, f"/live?topics=runs,run:{run.id},queues") as events:
        first = next(events)
        assert (first.event, set(first.data.split(","))) == ("changed", {"runs", "queues", f"run:{run.id}"})
        shared.hf.cancel(run.id)
        told: set[str] = set()
        while told != {"runs", "queues", f"run:{run.id}"}:
            told |= set(next(events).data.split(","))
        stop = threading.Event()

        def many() -> None:
            while not stop.wait(0.01):
                shared.hf.submit("changing")

        busy = threading.Thread(target=many)
        busy.start()
        before = shared.hf.clock.elapsed()
        for _ in range(4):
            next(events)
        took = shared.hf.clock.elapsed() - before
        stop.set()
        busy.join()
    assert took >= 1.2


def test_no_more_streams_are_opened_than_may_be_and_all_end_when_the_server_stops(
    sqlite_url: str, server: Serve
) -> None:
    with Holdfast(sqlite_url, max_streams=2) as hf:
        served = server(hf)
        client = served.client("viewer")
        with reading(client, "/live"), reading(client, "/live"):
            refused = client.get("/live", headers=STREAM)
            assert (refused.status_code, refused.json()["code"]) == (503, "too_many_streams")
            assert refused.headers["retry-after"] == "5"
        eventually_closed(served)
        with reading(client, "/live") as events:
            assert next(events).event == "changed"
            assert served.site is not None
            served.site.streams.close()
            assert list(events) == []  # to its end
        assert client.get("/live", headers=STREAM).status_code == 503


def eventually_closed(served: Server) -> None:
    assert served.site is not None
    for _ in range(6000):
        if served.site.streams.open == 0:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{served.site.streams.open} streams are still open")


def test_a_reader_that_takes_nothing_is_no_ones_burden_and_is_let_go(
    sqlite_url: str, server: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.live.sse.STUCK", 1.0)
    with Holdfast(sqlite_url) as hf:

        @hf.job(name="talk")
        def talk() -> None: ...

        run = hf.submit("talk")
        long = [Event(run_id=run.id, kind="LOG", data={"message": "x" * 5000}) for _ in range(2000)]
        hf.do(lambda tx: record(tx, long))
        hf.cancel(run.id)
        served = server(hf)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", served.port))
            head = f"GET /api/runs/{run.id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            deaf.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
            found = whole(served.client("viewer"), f"/api/runs/{run.id}/events")
            assert len(found) > 2000  # another one reads it all meanwhile
            eventually_closed(served)


def test_a_quiet_stream_says_that_it_is_still_there(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.web.live.streams.KEEP_ALIVE", 0.2)

    @shared.hf.job(name="quiet")
    def quiet() -> None: ...

    run = shared.hf.submit("quiet")
    for path in (f"/api/runs/{run.id}/events", "/live", "/api/events"):
        with shared.client("viewer").stream("GET", path, headers=STREAM, timeout=60) as answer:
            assert ": still here" in answer.iter_lines()


def test_streams_survive_a_database_that_is_away_for_a_moment(tmp_path: Path, server: Serve) -> None:
    there, away = tmp_path / "there", tmp_path / "away"
    there.mkdir()
    with Holdfast(f"sqlite:///{there / 'work.db'}") as hf:

        @hf.job(name="nothing")
        def nothing() -> None: ...

        run = hf.submit("nothing")
        served = server(hf)
        with reading(served.client("admin"), f"/api/runs/{run.id}/events") as events:
            assert next(events).told["kind"] == "RUN_QUEUED"
            # The folder, not the file: a file that is missing would be made anew, and be empty.
            there.rename(away)
            hf.store.close()
            with pytest.raises(StoreUnavailable):
                hf.snapshot(run.id)
            away.rename(there)
            hf.cancel(run.id)
            assert next(events).told["kind"] == "RUN_CANCELLED"
