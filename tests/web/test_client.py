"""The client: a remote Holdfast with the same methods, values and errors."""

from __future__ import annotations

import asyncio
import base64
import inspect
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.listing import runs_of
from tests.sample_app import sample_app
from tests.web.conftest import TOKEN, Server

from holdfast import (
    ArtifactNotFound,
    BuildNotFound,
    Holdfast,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidPolicy,
    InvalidSetting,
    NotAllowed,
    NotSerialisable,
    NotSignedIn,
    NoWorker,
    PipelineNotFound,
    QueueFull,
    RunFailed,
    RunNotFound,
    ScheduleNotFound,
    ServerRefused,
    ServerUnavailable,
    SlotTaken,
    UnknownJob,
    WorkerNotFound,
)
from holdfast.client import Client
from holdfast.client.streams import frames
from holdfast.values.filters import RunFilter


@pytest.fixture(scope="module")
def hf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdfast]:
    with sample_app(tmp_path_factory.mktemp("client")) as hf, hf.worker(queues=["default", "risky"]):
        yield hf


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, token=TOKEN) as found:
        yield found


NAMESPACES = ["artifacts", "builds", "bulk", "keys", "pipelines", "queues", "schedules", "statistics", "workers"]
# Parameters that only one side has: the server takes `by` from the token, and only the client has long polls (`wait`).
LEFT_OUT = {"by", "wait"}


@pytest.mark.parametrize("namespace", ["", *NAMESPACES])
def test_the_client_has_the_methods_of_holdfast(namespace: str, hf: Holdfast, client: Client) -> None:
    remote, local = (getattr(client, namespace), getattr(hf, namespace)) if namespace else (client, hf)
    for name, method in inspect.getmembers(remote, inspect.ismethod):
        if name.startswith("_") or name in ("follow",):
            continue
        own = inspect.signature(method).parameters
        same = inspect.signature(getattr(local, name)).parameters
        assert {one: own[one].default for one in own if one not in LEFT_OUT} == {
            one: same[one].default for one in same if one not in LEFT_OUT
        }, name


def test_a_run_is_submitted_waited_for_and_read(hf: Holdfast, client: Client) -> None:
    run = client.submit("letters.greet", name="Ada", times=2)
    assert run.result(20) == {"said": "hello Ada", "times": 2}
    assert client.snapshot(run.id) == hf.snapshot(run.id)
    assert client.why(run) == hf.why(run.id)
    assert client.timeline(run) == hf.timeline(run.id)
    assert client.steps(run) == hf.steps(run.id)
    assert client.logs(run).records == hf.logs(run.id).records
    assert client.artifacts.of(run) == hf.artifacts.of(run.id)
    with client.artifacts.open(run, "letter.txt", verify=True) as file:
        assert file.read() == b"Dear Ada"
    again = run.again()
    assert again.snapshot.again_of == run.id
    assert client.find_ids(run.id[:20]) == [run.id]


@pytest.mark.parametrize("value", [None, 0, 1.5, 1e22, "é\u2028\x1b", [], {"b": 1, "a": [True]}, 2**70])
def test_a_result_comes_back_as_plain_json(value: Any, hf: Holdfast, client: Client) -> None:
    run = client.submit("letters.echo", value=value)
    assert run.result(20) == value
    assert client.snapshot(run).result == hf.snapshot(run.id).result


def test_bytes_and_instants_are_sent_as_plain_json(hf: Holdfast, client: Client) -> None:
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    run = client.submit("letters.reverse", content=bytes(range(256)), at=at)
    content, sealed_at = run.result(20)
    assert (base64.urlsafe_b64decode(content), datetime.fromisoformat(sealed_at)) == (bytes(range(256))[::-1], at)
    assert hf.get(run.id).result(20) == (bytes(range(256))[::-1], at)

    again = client.submit("letters.reverse", **client.snapshot(run).args)
    assert again.result(20) == [content, sealed_at]
    with pytest.raises(InvalidArguments, match="content: Data should be valid base64"):
        client.submit("letters.reverse", content="no base64", at=at)


def test_a_failed_run_raises_run_failed(client: Client) -> None:
    with pytest.raises(RunFailed, match="printer offline"):
        client.submit("letters.fail").result(20)


def test_the_options_of_a_submission_reach_the_server(hf: Holdfast, client: Client) -> None:
    due_at = datetime(2100, 1, 1, tzinfo=UTC)
    job = client.jobs["letters.greet"].using(
        queue="later", priority=7, key="k", due_at=due_at, tags={"a": "b"}, idempotency_key="once"
    )
    run = hf.snapshot(job.submit(name="Ada").id)
    assert (run.queue, run.priority, run.key, run.due_at, run.tags) == ("later", 7, "k", due_at, {"a": "b"})
    assert job.submit(name="Ada").id == run.id
    with pytest.raises(IdempotencyConflict):
        job.submit(name="Bob")
    after = client.jobs["letters.greet"].using(depends_on=[run.id], delay=5).submit(name="Cy")
    assert hf.snapshot(after.id).depends_on == (run.id,)
    assert client.cancel(after, reason="enough") == "cancelled"
    assert hf.snapshot(after.id).error == "enough"


def test_runs_are_searched_counted_and_listed(hf: Holdfast, client: Client) -> None:
    for number in range(3):
        hf.jobs["letters.echo"].using(queue="asleep", tags={"n": str(number)}).submit(value={"size": 64})
    wanted = RunFilter(queue="asleep", args={"value.size": 64})
    page = client.search(wanted, limit=2)
    assert page == hf.search(wanted, limit=2)
    assert client.search(wanted, limit=2, after=page.next) == hf.search(wanted, limit=2, after=page.next)
    assert client.count(wanted) == hf.count(wanted)
    assert client.counts(wanted) == hf.counts(wanted)
    assert client.search(RunFilter(tag=("n", "1"))).items == hf.search(RunFilter(tag=("n", "1"))).items
    listed = runs_of(client, queue="asleep")
    assert listed == runs_of(hf, queue="asleep")
    assert client.search(RunFilter(queue="asleep"), before=listed[0], limit=1).items == (listed[1],)


def test_a_search_reads_all_pages(hf: Holdfast, client: Client) -> None:
    hf.jobs["letters.echo"].using(queue="many").submit_many([{"value": n} for n in range(401)])
    assert [run.args["value"] for run in runs_of(client, queue="many")] == list(range(400, -1, -1))


def test_values_that_lists_leave_out_are_fetched(hf: Holdfast, client: Client) -> None:
    hf.jobs["letters.echo"].using(queue="long").submit(value="x" * 50_000)
    assert runs_of(client, queue="long") == runs_of(hf, queue="long")


def test_every_namespace_returns_what_holdfast_returns(hf: Holdfast, client: Client) -> None:
    built = client.submit("environments.install", package="a", fingerprint="f1")
    shot = client.submit("film", text="take one")
    for run in (built, shot):
        run.result(20)
    assert client.builds.list() == hf.builds.list()
    assert client.builds.get(built) == hf.builds.get(built.id)
    assert client.builds.history(built) == hf.builds.history(built.id)
    hf.jobs["letters.echo"].using(depends_on=[built.id]).submit(value=1)
    assert client.builds.uses(client.builds.list()) == hf.builds.uses(hf.builds.list()) == {built.id: 1}
    assert client.builds.invalidate(built, reason="old").state == "stale"
    assert client.builds.rebuild(built).snapshot.again_of == built.id
    assert client.pipelines.list() == hf.pipelines.list()
    assert client.pipelines.show(shot) == hf.pipelines.show(shot.id)
    assert client.pipelines.segments(shot, "audio") == hf.pipelines.segments(shot.id, "audio")
    assert client.pipelines.progress([shot.snapshot]) == hf.pipelines.progress([hf.snapshot(shot.id)])
    assert client.pipelines.rerun(shot, from_stage="audio").snapshot.again_of == shot.id
    assert client.schedules.list() == hf.schedules.list()
    assert client.schedules.get("letters.daily") == hf.schedules.get("letters.daily")
    assert client.keys.list() == hf.keys.list()
    client.queues.pause("mail", note="down")
    client.queues.limit("mail", max_queued=3)
    assert client.queues.get("mail") == hf.queues.get("mail")
    client.queues.resume("mail")
    client.queues.limit("mail", max_queued=None)
    assert hf.queues.get("mail").max_queued is None
    [worker] = client.workers.list()
    assert client.workers.get(worker.id).id == worker.id
    assert worker.jobs == hf.workers.list()[0].jobs
    assert client.statistics.overview().capacity == hf.statistics.overview().capacity
    assert client.statistics.failures() == hf.statistics.failures()
    assert client.statistics.jobs() == hf.statistics.jobs()
    assert client.statistics.counters() == hf.statistics.counters()
    assert client.statistics.series(timedelta(hours=1)).step == timedelta(minutes=1)
    assert client.audit_log(limit=3) == hf.audit_log(limit=3)
    token = client.tokens.add("eve", role="operator", expires=60)
    assert token.startswith("hf_")
    assert client.tokens.list() == hf.tokens.list()
    client.tokens.remove("eve")
    bulk = client.bulk.cancel(RunFilter(queue="nothing", tag=("a", "b")), reason="enough")
    assert bulk.result(20) == {"matched": 0, "done": 0, "skipped": 0}
    assert client.bulk.again(RunFilter(queue="nothing")).result(20)["done"] == 0


def test_errors_of_the_server_are_raised_with_the_same_classes(server: Server, client: Client) -> None:
    def refused(error: type[HoldfastError], ask: Any) -> HoldfastError:
        with pytest.raises(error) as caught:
            ask()
        assert type(caught.value) is error
        return caught.value

    refused(RunNotFound, lambda: client.snapshot("nothing"))
    refused(UnknownJob, lambda: client.submit("letters.gret"))
    refused(InvalidArguments, lambda: client.submit("letters.greet", nme="Ada"))
    refused(BuildNotFound, lambda: client.builds.get(client.submit("letters.echo", value=1)))
    refused(PipelineNotFound, lambda: client.pipelines.show("nothing"))
    refused(ScheduleNotFound, lambda: client.schedules.pause("nothing"))
    refused(WorkerNotFound, lambda: client.workers.drain("nothing"))
    refused(ArtifactNotFound, lambda: client.artifacts.open(client.submit("letters.echo", value=1), "x"))
    at = datetime(2026, 11, 1, tzinfo=UTC)
    refused(NoWorker, lambda: client.schedules.trigger("letters.yearly", scheduled_for=at))
    run = client.schedules.trigger("letters.daily", scheduled_for=at)
    taken = refused(SlotTaken, lambda: client.schedules.trigger("letters.daily", scheduled_for=at))
    assert isinstance(taken, SlotTaken)
    assert taken.run_id == run.id
    small = client.jobs["letters.echo"].using(queue="small")
    small.submit(value=1)
    full = refused(QueueFull, lambda: small.submit(value=2))
    assert isinstance(full, QueueFull)
    assert (full.queue, full.limit) == ("small", 1)
    assert full.retry_after >= timedelta(seconds=1)
    unfit = refused(ServerRefused, lambda: client.queues.limit("x", max_queued=0))
    assert isinstance(unfit, ServerRefused)
    assert unfit.problem == "invalid_request"
    assert "max_queued" in str(unfit)
    with Client(server.url, token="wrong") as stranger:
        refused(NotSignedIn, stranger.queues.list)
    with Client(server.url, token=server.token_of("viewer")) as viewer:
        refused(NotAllowed, lambda: viewer.submit("letters.echo", value=1))
    with Client("http://127.0.0.1:9", token="t") as nobody:
        refused(ServerUnavailable, nobody.queues.list)
    refused(InvalidSetting, lambda: Client("ftp://x"))


def test_values_that_cannot_be_sent_are_refused_and_names_are_quoted_in_paths(client: Client) -> None:
    for wrong in ("é", "a\nb"):
        with pytest.raises(InvalidPolicy, match="ASCII"):
            client.jobs["letters.echo"].using(idempotency_key=wrong).submit(value=1)
        with pytest.raises(InvalidSetting, match="ASCII"):
            Client(client.url, token=wrong)
    with pytest.raises(InvalidSetting, match="user or password") as refused:
        Client("http://ada:secret@127.0.0.1:1")
    assert "secret" not in str(refused.value)
    with pytest.raises(NotSerialisable):
        client.submit("letters.echo", value=object())
    sent = client.submit("letters.echo", value=datetime(2026, 1, 2, tzinfo=UTC))
    assert sent.snapshot.args == {"value": "2026-01-02T00:00:00Z"}
    for name in (".", "..", "a/../b", "%2e%2e", "a?b#c"):
        client.queues.pause(name)
        assert client.queues.get(name).paused_at is not None
        client.queues.resume(name)


def test_the_token_may_come_with_the_url_or_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(f"{server.url}/?token={TOKEN}") as brought:
        assert brought.url == server.url
        brought.queues.list()
    monkeypatch.setenv("HOLDFAST_TOKEN", TOKEN)
    with Client(f"{server.url}/api/") as from_environment:
        from_environment.queues.list()


def test_events_are_followed_until_the_run_has_ended(hf: Holdfast, client: Client) -> None:
    run = hf.jobs["letters.greet"].using(queue="unserved").submit(name="Followed")
    kinds: list[str] = []

    def follow() -> None:
        kinds.extend(event.kind for _, event in client.follow(run.id))

    reader = threading.Thread(target=follow)
    reader.start()
    run.cancel()
    reader.join(60)
    assert kinds[0] == "RUN_QUEUED"
    assert kinds[-1] == "RUN_CANCELLED"


def test_the_http_timeout_of_a_long_poll_includes_its_wait(
    hf: Holdfast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = hf.jobs["letters.greet"].using(queue="unserved").submit(name="Waits")
    cursor = client.timeline_page(run.id).events[-1][0]
    http, timeouts = client._wire._http, []

    def asked(*given: Any, request: Any = http.request, **options: Any) -> Any:
        timeouts.append(options["timeout"])
        return request(*given, **options)

    monkeypatch.setattr(http, "request", asked)
    assert client.timeline_page(run.id, after=cursor, wait=0.25).events == ()
    assert timeouts[0] == 30.25


def test_following_continues_from_the_last_event(hf: Holdfast, client: Client) -> None:
    run = client.submit("letters.greet", name="Again")
    run.result(20)
    whole = list(client.follow(run))
    assert [event for _, event in whole] == hf.timeline(run.id)
    for number, (cursor, _) in enumerate(whole):
        assert list(client.follow(run, after=cursor)) == whole[number + 1 :]
    assert client.timeline_page(run, after=whole[1][0]).events == tuple(whole[2:])
    assert client.events(kinds=["LOG"], limit=200) == hf.events(kinds=["LOG"], limit=200)


def test_a_broken_stream_continues_where_it_broke(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = client.submit("letters.greet", name="Broken")
    run.result(20)
    whole = list(client.follow(run))
    wire = client._wire
    original, asked = wire.stream, 0

    def breaking(*path: str, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return Broken(original(*path, **options), after=2) if asked < 3 else original(*path, **options)

    monkeypatch.setattr(wire, "stream", breaking)
    monkeypatch.setattr("holdfast.client.streams.PAUSE", 0)
    assert list(client.follow(run)) == whole
    assert asked == 3


class Broken:
    """A stream that breaks after the given number of events."""

    def __init__(self, stream: Any, *, after: int) -> None:
        self._stream, self._after = stream, after

    def __enter__(self) -> Broken:
        self._response = self._stream.__enter__()
        self.status_code = self._response.status_code
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)

    def iter_lines(self) -> Iterator[str]:
        seen = 0
        for line in self._response.iter_lines():
            yield line
            seen += line.startswith('data: {"')
            if seen == self._after and not line:
                raise ServerUnavailable("the connection broke")


def test_event_stream_frames_are_parsed_as_the_standard_defines() -> None:
    lines = [": hello", "", "retry: 5", "", "id: 1", "data: a", "data:b", "", "event: end", "data: {}", "", "data: cut"]
    assert list(frames(iter(lines))) == [("message", "a\nb"), ("end", "{}")]


def test_many_async_waiters_need_no_threads_and_leave_nothing_behind(
    hf: Holdfast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    get = client._wire.get

    def noted(*path: str, **query: Any) -> Any:
        asked.append(path[1])
        return get(*path, **query)

    monkeypatch.setattr(client._wire, "get", noted)
    waits = [hf.jobs["letters.echo"].using(queue="nobody").submit(number) for number in range(300)]
    done = client.submit("letters.echo", value=7)

    async def scenario() -> int:
        asked.clear()
        tasks = [asyncio.create_task(client._handle(run.snapshot).aresult()) for run in waits]
        while asked.count("open") < 20:
            await asyncio.sleep(0.01)
        assert set(asked) == {"open"}, "no run is polled on its own"
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("asyncio")]
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 60) == "free"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert client.waiter._watches == {}
        return int(await done.aresult(timeout=60))

    try:
        assert asyncio.run(scenario()) == 7
    finally:
        for run in waits:
            run.cancel()
    gone = client._handle(done.snapshot)
    gone.id = "0" * 26
    with pytest.raises(RunNotFound):
        asyncio.run(gone.aresult(timeout=60))
