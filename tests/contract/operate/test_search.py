"""Search: each filter finds the matching runs, page by page, and every page is bounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Count, Holdfast, InvalidArguments, Job, RunFilter, SearchPage, Snapshot
from holdfast.operate import search
from holdfast.runs.outcomes import Failed, Succeeded, TimedOut
from holdfast.testing import FakeClock, Manual

STATES = ("queued", "running", "succeeded", "failed", "cancelled", "timed_out")


@pytest.fixture
def work(hf: Holdfast) -> Job[..., Any]:
    @hf.job(name="work", key=lambda **given: given.get("key"))
    def work(document_id: str, options: dict[str, Any] | None = None, key: str | None = None) -> None: ...

    return work


def found(hf: Holdfast, **wanted: Any) -> list[str]:
    return [run.id for run in hf.search(RunFilter(**wanted)).items]


def pages(hf: Holdfast, wanted: RunFilter, *, limit: int) -> list[SearchPage[Snapshot]]:
    got = [hf.search(wanted, limit=limit)]
    while (after := got[-1].next) is not None:
        assert len(got) < 100
        got.append(hf.search(wanted, limit=limit, after=after))
    return got


def one_of_each_state(hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any]) -> dict[str, str]:
    """A run in each state; of the two queued runs, one is ready and one waits."""
    worker = manual.worker()
    ids: dict[str, str] = {}
    for state, outcome in (
        ("succeeded", Succeeded()),
        ("failed", Failed("ERROR", "Traceback …\nValueError: 100% of doc_1 is [Broken]")),
        ("timed_out", TimedOut("Timed out after 2 s")),
    ):
        ids[state] = work.submit(document_id=state).id
        clock.advance(timedelta(seconds=1))
        worker.finish(worker.claim()[0], outcome)
    ids["cancelled"] = work.submit(document_id="cancelled").id
    hf.cancel(ids["cancelled"])
    ids["running"] = work.submit(document_id="running").id
    worker.claim()
    ids["waiting"] = work.using(delay=60).submit(document_id="waiting").id
    ids["queued"] = work.submit(document_id="queued").id
    return ids


def test_runs_are_found_by_each_state(hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any]) -> None:
    ids = one_of_each_state(hf, manual, clock, work)

    for state in STATES:
        expected = [ids["queued"], ids["waiting"]] if state == "queued" else [ids[state]]
        assert found(hf, state=state) == expected
        assert hf.count(RunFilter(state=state)) == Count(len(expected), False)
    assert found(hf) == sorted(ids.values(), reverse=True)
    assert {state: count.number for state, count in hf.counts().items()} == dict.fromkeys(STATES, 1) | {"queued": 2}


def test_ended_runs_are_found_in_order_of_submission_too(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="other")
    def other() -> None: ...

    worker, submitted = manual.worker(), sorted(other.submit().id for _ in range(5))
    for claimed in sorted(worker.claim(limit=5), key=lambda claimed: claimed.lease.run_id, reverse=True):
        clock.advance(timedelta(seconds=1))
        worker.finish(claimed, Succeeded())
    waiting = other.submit().id

    done = RunFilter(state="succeeded")
    assert [run.id for run in hf.search(done).items] == submitted
    first = hf.search(done, order="submitted", limit=2)
    assert [run.id for run in first.items] == submitted[:2:-1]
    assert [run.id for run in hf.search(done, order="submitted", after=first.next).items] == submitted[2::-1]
    assert [run.id for run in hf.search(done, order="submitted", before=submitted[2]).items] == submitted[1::-1]
    assert [run.id for run in hf.search(done, before=submitted[2]).items] == submitted[:2]
    assert [run.id for run in hf.search(order="submitted").items] == [waiting, *submitted[::-1]]


def test_each_filter_finds_the_matching_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any]
) -> None:
    ids = one_of_each_state(hf, manual, clock, work)
    keyed = work.submit(document_id="keyed", key="k").id
    tagged = work.using(queue="other", tags={"a_%": "b[c]", "d": "e"}).submit(document_id="tagged").id

    @hf.job(name="parent")
    def parent() -> None: ...

    above = parent.submit().id
    assert found(hf, job="parent") == [above]
    assert found(hf, queue="other") == [tagged]
    assert found(hf, key="k") == [keyed]
    assert found(hf, tag=("a_%", "b[c]")) == [tagged]
    assert found(hf, tag=("axx", "b[c]")) == []
    assert found(hf, error="valueerror: 100% of doc_1 IS [broken]") == [ids["failed"]]
    assert found(hf, state="failed", error="doc-1") == []
    assert found(hf, state="failed", job="work", queue="default") == [ids["failed"]]
    assert found(hf, state="failed", job="parent") == []
    counted = {state: count.number for state, count in hf.counts(RunFilter(job="parent", state="failed")).items()}
    assert counted == dict.fromkeys(STATES, 0) | {"queued": 1}
    assert hf.count(RunFilter(key="k")) == Count(1, False)


ARGUMENTS: list[tuple[dict[str, Any], bool]] = [
    ({"document_id": "doc-1"}, True),
    ({"document_id": "doc-2"}, False),
    ({"options.size": "64"}, True),
    ({"options.size": 64}, True),
    ({"options.size": 64, "document_id": "doc-1"}, True),
    ({"options.size": 64, "document_id": "doc-2"}, False),
    ({"options.ratio": 0.5}, True),
    ({"options.deep.very.on": True}, True),
    ({"options.deep.very.on": "true"}, True),
    ({"options.deep.very.on": "1"}, False),
    ({"options.sizes.1": 2}, True),
    ({"options.sizes.7": 2}, False),
    ({"options.none": None}, True),
    ({"options.missing": "null"}, True),
    ({"options.size": None}, False),
    ({"options.text": "ünï 'quoted' \"twice\""}, True),
    ({"options.number_as_text": 7}, True),
    ({"options.with-dash": "x"}, True),
]


def test_an_argument_is_found_by_its_path(hf: Holdfast, work: Job[..., Any]) -> None:
    options = {
        "size": 64,
        "ratio": 0.5,
        "deep": {"very": {"on": True}},
        "sizes": [1, 2],
        "none": None,
        "text": "ünï 'quoted' \"twice\"",
        "number_as_text": "7",
        "with-dash": "x",
    }
    run = work.submit(document_id="doc-1", options=options)

    for args, matches in ARGUMENTS:
        assert found(hf, args=args) == ([run.id] if matches else []), args


def test_a_pipeline_is_found_by_its_own_arguments_and_its_runs_by_its_id(hf: Holdfast, manual: Manual) -> None:
    video = hf.pipeline("video")

    @video.stage()
    def script(text: str) -> str:
        return text

    @video.stage(after=script)
    def render(script: str) -> str:
        raise ValueError(script)

    run, other = video.submit(text="one"), video.submit(text="two")
    manual.run_all()

    assert found(hf, args={"text": "one"}) == [run.id]
    assert found(hf, parts=False) == [other.id, run.id]
    parts = hf.search(RunFilter(parent=run.id)).items
    assert {(part.stage, part.state) for part in parts} == {("script", "succeeded"), ("render", "failed")}
    [failed] = hf.search(RunFilter(parent=run.id, state="failed")).items
    assert failed.stage == "render"
    assert {state: count.number for state, count in hf.counts(RunFilter(parent=run.id)).items() if count.number} == {
        "succeeded": 1,
        "failed": 1,
    }


def test_a_time_range_filters_by_submission(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any]
) -> None:
    ids = []
    start = clock.now()
    for hour in range(5):
        ids.append(work.submit(document_id=str(hour)).id)
        clock.advance(timedelta(hours=1))

    def between(first: float, last: float, **more: Any) -> list[str]:
        return found(hf, since=start + timedelta(hours=first), until=start + timedelta(hours=last), **more)

    assert between(1, 3) == [ids[2], ids[1]]
    assert between(1, 1) == []
    assert between(0, 99, state="queued") == ids[::-1]
    assert found(hf, since=datetime(9999, 12, 31, tzinfo=UTC), until=datetime.min.replace(tzinfo=UTC)) == []
    worker = manual.worker()
    for claim in worker.claim(limit=5):
        worker.finish(claim)
    assert between(3, 5, state="succeeded") == [ids[4], ids[3]]


def test_pages_of_any_size_add_up_to_the_whole(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any]
) -> None:
    runs = work.submit_many([{"document_id": str(number % 3)} for number in range(30)])
    worker = manual.worker()
    for number, claim in enumerate(worker.claim(limit=20)):
        worker.finish(claim, Failed("ERROR", f"no {number}"))
        if number % 4 == 0:
            clock.advance(timedelta(seconds=1))  # several end in one instant

    for wanted in (
        RunFilter(),
        RunFilter(state="queued"),
        RunFilter(state="failed"),
        RunFilter(job="work"),
        RunFilter(args={"document_id": "1"}),
        RunFilter(state="failed", args={"document_id": "2"}),
    ):
        whole = [run.id for run in hf.search(wanted, limit=100).items]
        assert whole
        for limit in (1, 3, 7):
            assert [run.id for page in pages(hf, wanted, limit=limit) for run in page.items] == whole
    ended = hf.search(RunFilter(state="failed"), limit=100).items
    assert [run.finished_at for run in ended] == sorted((run.finished_at for run in ended), reverse=True)  # type: ignore[type-var]
    assert len(found(hf)) == len(runs)


def test_a_page_reads_a_bounded_number_of_rows_and_returns_a_cursor(
    hf: Holdfast, work: Job[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "BUDGET", 20)
    monkeypatch.setattr(search, "FIRST", 4)
    runs = work.submit_many([{"document_id": "rare" if number == 0 else "often"} for number in range(50)])
    wanted = RunFilter(args={"document_id": "rare"})

    got = pages(hf, wanted, limit=5)

    assert [(len(page.items), page.searched) for page in got] == [(0, 20), (0, 20), (1, 10)]
    assert [page.until is not None for page in got] == [True, True, True]
    assert got[-1].items[0].id == runs[0].id
    assert hf.count(wanted) == Count(0, True)
    assert hf.count(RunFilter(state="queued")) == Count(20, True)
    assert hf.counts()["queued"] == Count(20, True)
    assert hf.counts(RunFilter(args={"document_id": "often"}))["queued"] == Count(20, True)


def test_no_run_is_seen_twice_when_runs_change_between_pages(hf: Holdfast, manual: Manual, work: Job[..., Any]) -> None:
    work.submit_many([{"document_id": str(number)} for number in range(6)])
    first = hf.search(RunFilter(state="queued"), limit=2)
    work.submit(document_id="new")
    for run in first.items:
        hf.cancel(run.id)

    second = hf.search(RunFilter(state="queued"), limit=10, after=first.next)

    assert [run.args["document_id"] for run in second.items] == ["3", "2", "1", "0"]


def test_a_filter_comes_back_unchanged_from_json() -> None:
    full = RunFilter(
        state="failed",
        job="work",
        tag=("a", "b"),
        parts=False,
        since=datetime(2026, 1, 1, tzinfo=UTC),
        args={"a.b": 1, "c": None, "d": "x"},
    )
    for wanted in (full, RunFilter()):
        assert RunFilter.from_json(wanted.to_json()) == wanted
    for wrong in ({"state": "lost"}, {"what": 1}, {"since": "soon"}):
        with pytest.raises(InvalidArguments):
            RunFilter.from_json(wrong)


def test_an_altered_cursor_or_one_of_another_list_is_refused(hf: Holdfast, work: Job[..., Any]) -> None:
    work.submit_many([{"document_id": str(number)} for number in range(3)])
    cursor = hf.search(limit=1).next
    assert cursor is not None
    changed = ("x" if cursor[0] != "x" else "y") + cursor[1:]
    for wrong in ("", "x", changed, cursor[:-1], cursor + "0", "~" * 50, "ä", "a" * 5000, 7):
        with pytest.raises(InvalidArguments, match="cursor"):
            hf.search(limit=1, after=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match="cursor"):
        hf.search(RunFilter(state="failed"), after=cursor)
    with pytest.raises(InvalidArguments, match="limit"):
        hf.search(limit=0)
    wrong_filter: Any = {"state": "failed"}
    for call in (hf.search, hf.count, hf.counts):
        with pytest.raises(InvalidArguments, match="RunFilter"):
            call(wrong_filter)
