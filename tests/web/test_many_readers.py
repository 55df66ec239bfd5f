"""A thousand readers of one process: each gets every event once, and other requests do not wait."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator

import pytest
from tests.fixtures import Database
from tests.web.conftest import TOKEN, Serve
from tests.web.event_stream import read_events

from holdfast import Holdfast
from holdfast.runs.events import record
from holdfast.values.events import Event

READERS, RUNS, EVENTS = 1000, 20, 5


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Raise the limit of open files: both ends of every connection are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_streams_get_every_event_once_over_few_database_connections(postgres_url: str, serve: Serve) -> None:
    database = Database(postgres_url)
    with Holdfast(postgres_url) as hf:

        @hf.job(name="watched")
        def watched() -> None: ...

        run_ids = [run.id for run in watched.submit_many([{}] * RUNS)]
        served = serve(hf)
        assert served.site is not None
        streams = served.site.streams

        def tell(number: int) -> None:
            told = [Event(run_id=run_id, kind="LOG", data={"n": number}) for run_id in run_ids]
            hf.do(lambda tx: record(tx, told))

        async def scenario() -> list[list[str]]:
            readers = [asyncio.create_task(read(served.port, run_ids[number % RUNS])) for number in range(READERS)]
            while streams.open < READERS:
                await asyncio.sleep(0.05)
            for number in range(EVENTS):
                await asyncio.to_thread(tell, number)
            with served.client("viewer") as client:
                plain = await asyncio.to_thread(client.get, f"/api/runs/{run_ids[0]}")
            assert plain.json()["state"] == "queued"
            assert streams.open == READERS
            connections = "select count(*) from pg_stat_activity where datname = current_database()"
            assert (await asyncio.to_thread(database.all, connections))[0][0] <= 12
            for run_id in run_ids:
                await asyncio.to_thread(hf.cancel, run_id)
            return await asyncio.gather(*readers)

        for number, lines in enumerate(asyncio.run(scenario())):
            *events, end = read_events(lines)
            assert end.event == "end"
            told = [event.json for event in events]
            assert {event["run_id"] for event in told} == {run_ids[number % RUNS]}
            kinds = [event["kind"] for event in told]
            assert kinds == ["RUN_QUEUED", *["LOG"] * EVENTS, "RUN_CANCELLED"]
            assert [event["data"]["n"] for event in told if event["kind"] == "LOG"] == list(range(EVENTS))


async def read(port: int, run_id: str) -> list[str]:
    """The lines of one stream, to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET /api/runs/{run_id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    writer.write(f"{head}Accept: text/event-stream\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200"), head
    # In a chunked response, a size comes before each piece of data.
    return [line for piece in body.split("\r\n")[1::2] for line in piece.split("\n")]
