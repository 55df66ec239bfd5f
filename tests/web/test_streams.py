"""Event streams send every event once and from any cursor, even with slow or disconnecting readers."""

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
from tests.fixtures import Database
from tests.web.conftest import TOKEN, Serve, Server
from tests.web.event_stream import STREAM, StreamEvent, read_events, read_stream

from holdfast import Context, Holdfast, Retry, StoreUnavailable
from holdfast.runs.events import record
from holdfast.testing import Manual
from holdfast.values.events import Event


def prepared(hf: Holdfast) -> Manual:
    @hf.job(name="work", max_attempts=2, retry=Retry(delay=0))
    def work(ctx: Context, fail_first: bool = False) -> int:
        ctx.step("read", lambda: 1)
        ctx.progress(0.5)
        if fail_first and ctx.run.claim == 1:
            raise ValueError("once")
        ctx.step("write", lambda: 2)
        return 3

    return Manual(hf)


def test_a_stream_sends_the_whole_timeline_from_any_cursor_without_gap_or_repeat(hf: Holdfast, serve: Serve) -> None:
    manual = prepared(hf)
    run = hf.submit("work", fail_first=True)
    manual.run_all()
    client = serve(hf).client("viewer")
    path = f"/api/runs/{run.id}/events"
    *events, end = read_stream(client, path)
    assert (end.event, end.id) == ("end", None)
    assert [event.id for event in events] == [cursor for cursor, _ in hf.timeline_page(run.id).events]
    assert Counter(event.json["kind"] for event in events) == Counter(event.kind for event in hf.timeline(run.id))
    for number, event in enumerate(events[:-1]):
        assert read_stream(client, path, after=event.id)[:-1] == events[number + 1 :]
    with client.stream("GET", path, headers=STREAM | {"Last-Event-ID": str(events[-1].id)}) as answer:
        assert answer.status_code == 204  # any other status makes a browser reconnect for ever
    assert [one.event for one in read_stream(client, f"{path}?after={events[-1].id}")] == ["end"]


def test_a_stream_with_an_unknown_run_or_an_invalid_cursor_is_refused(shared: Server) -> None:
    client = shared.client("viewer")
    assert client.get("/api/runs/none/events", headers=STREAM).json()["code"] == "run_not_found"

    @shared.hf.job(name="nothing")
    def nothing() -> None: ...

    run = shared.hf.submit("nothing")
    wrong = client.get(f"/api/runs/{run.id}/events?after=nonsense", headers=STREAM)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_arguments")
    assert shared.client().get(f"/api/runs/{run.id}/events", headers=STREAM).status_code == 401


@contextlib.contextmanager
def reading(client: httpx.Client, path: str, **headers: str) -> Iterator[Iterator[StreamEvent]]:
    with client.stream("GET", path, headers=STREAM | headers, timeout=60) as answer:
        assert answer.status_code == 200, answer.read()
        yield read_events(answer.iter_lines())


def test_streams_and_long_polls_receive_events_as_they_happen(live: Holdfast, serve: Serve) -> None:
    began, go_on = threading.Event(), threading.Event()

    @live.job(name="slow")
    def slow(ctx: Context) -> None:
        ctx.step("first", lambda: 1)
        began.set()
        go_on.wait(60)

    client = serve(live).client("viewer")
    run = live.submit("slow")
    path = f"/api/runs/{run.id}/events"
    queued = client.get(path).json()
    assert [event["kind"] for event in queued["events"]] == ["RUN_QUEUED"]
    polled: list[dict[str, Any]] = []
    ask = {"after": queued["next"], "wait": 20}
    asking = threading.Thread(target=lambda: polled.append(client.get(path, params=ask).json()))
    asking.start()
    with reading(client, path) as events, live.worker():
        assert next(events).json["kind"] == "RUN_QUEUED"
        assert began.wait(60)
        kinds = []
        while "STEP_FINISHED" not in kinds:  # sent while the run is still running
            kinds.append(next(events).json["kind"])
        go_on.set()
        kinds += [event.json["kind"] for event in events if event.event == "message"]
    asking.join(60)
    assert polled[0]["events"][0]["kind"] == "RUN_STARTED"
    assert kinds == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_SUCCEEDED"]


def test_events_of_all_runs_are_sent_in_the_order_of_their_commits(postgres_url: str, serve: Serve) -> None:
    database = Database(postgres_url)
    with Holdfast(postgres_url) as hf:
        hf.start()
        client = serve(hf).client("viewer")
        insert = (
            "insert into holdfast_events (run_id, kind, data, happened_at) values (null, 'LOG', '{{\"n\": {}}}', now())"
        )
        with contextlib.closing(database.connect()) as early, reading(client, "/api/events") as events:
            database.begin(early)
            early.execute(insert.format(1))  # has the lower number, but is not committed yet
            database.run(insert.format(2))
            told: list[int] = []
            reader = threading.Thread(target=lambda: told.extend(next(events).json["data"]["n"] for _ in range(2)))
            reader.start()
            # The stream polls at least twice before the first transaction commits.
            reader.join(2.5)
            assert told == []
            early.execute("commit")
            reader.join(60)
        assert sorted(told) == [1, 2]
        assert [event.data["n"] for _, event in hf.events(kinds=["LOG"]).events] == told


def test_a_page_is_notified_of_changes_at_a_limited_rate(shared: Server) -> None:
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


def test_the_number_of_streams_is_limited_and_all_end_when_the_server_stops(sqlite_url: str, serve: Serve) -> None:
    with Holdfast(sqlite_url, max_streams=2) as hf:
        served = serve(hf)
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
            assert list(events) == []  # the stream has ended
        assert client.get("/live", headers=STREAM).status_code == 503


def eventually_closed(served: Server) -> None:
    assert served.site is not None
    for _ in range(6000):
        if served.site.streams.open == 0:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{served.site.streams.open} streams are still open")


def test_a_reader_that_does_not_read_is_disconnected(
    sqlite_url: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.live.sse.STUCK", 1.0)
    with Holdfast(sqlite_url) as hf:

        @hf.job(name="talk")
        def talk() -> None: ...

        run = hf.submit("talk")
        long = [Event(run_id=run.id, kind="LOG", data={"message": "x" * 5000}) for _ in range(2000)]
        hf.do(lambda tx: record(tx, long))
        hf.cancel(run.id)
        served = serve(hf)
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.connect(("127.0.0.1", served.port))
            head = f"GET /api/runs/{run.id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            stalled.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
            found = read_stream(served.client("viewer"), f"/api/runs/{run.id}/events")
            assert len(found) > 2000  # meanwhile another reader gets all events
            eventually_closed(served)


def test_a_quiet_stream_sends_keep_alive_comments(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.web.live.streams.KEEP_ALIVE", 0.2)

    @shared.hf.job(name="quiet")
    def quiet() -> None: ...

    run = shared.hf.submit("quiet")
    for path in (f"/api/runs/{run.id}/events", "/live", "/api/events"):
        with shared.client("viewer").stream("GET", path, headers=STREAM, timeout=60) as answer:
            assert ": still here" in answer.iter_lines()


def test_streams_survive_a_short_outage_of_the_database(tmp_path: Path, serve: Serve) -> None:
    there, away = tmp_path / "there", tmp_path / "away"
    there.mkdir()
    with Holdfast(f"sqlite:///{there / 'work.db'}") as hf:

        @hf.job(name="nothing")
        def nothing() -> None: ...

        run = hf.submit("nothing")
        served = serve(hf)
        with reading(served.client("admin"), f"/api/runs/{run.id}/events") as events:
            assert next(events).json["kind"] == "RUN_QUEUED"
            # Move the folder, not the file: SQLite would create a missing file anew, without tables.
            there.rename(away)
            hf.store.close()
            with pytest.raises(StoreUnavailable):
                hf.snapshot(run.id)
            away.rename(there)
            hf.cancel(run.id)
            assert next(events).json["kind"] == "RUN_CANCELLED"
