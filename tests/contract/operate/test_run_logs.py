"""The log of a run, by level and text, page by page."""

from __future__ import annotations

import pytest

from holdfast import Context, Holdfast, InvalidArguments, RunNotFound
from holdfast.operate import logs
from holdfast.values.logs import Logs


def chatty(hf: Holdfast) -> str:
    """A run that has logged twice at every level."""

    @hf.job(name="chatty")
    def chatty(ctx: Context) -> None:
        for number in (1, 2):
            for level in ("debug", "info", "warning", "error", "critical"):
                getattr(ctx.log, level)(f"{level} {number} Straße")
            ctx.progress(number, 2)

    run = chatty.submit()
    with hf.worker():
        run.result(20)
    return run.id


@pytest.fixture
def settled(live: Holdfast) -> str:
    return chatty(live)


def messages(found: Logs) -> list[str]:
    return [record.message.rpartition(" ")[0] for record in found.records]


def test_log_records_are_found_by_level_and_text(live: Holdfast, settled: str) -> None:
    everything = live.logs(settled)
    assert messages(everything) == [
        f"{level} {n}" for n in (1, 2) for level in ("info", "warning", "error", "critical")
    ]
    assert not everything.more
    assert messages(live.logs(settled, level="ERROR")) == ["error 1", "critical 1", "error 2", "critical 2"]
    assert messages(live.logs(settled, level="ERROR", text="ERROR 2")) == ["error 2"]
    assert messages(live.logs(settled, text="STRASSE", limit=1)) == ["info 1"]
    assert everything.records[0].level == "INFO"
    assert everything.records[0].claim == 1


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_log_pages_show_every_record_once(live: Holdfast, settled: str, limit: int) -> None:
    found: list[str] = []
    after: str | None = None
    for _ in range(20):
        page = live.logs(settled, level="WARNING", after=after, limit=limit)
        found += messages(page)
        after = page.next
        if not page.more:
            break
    assert found == messages(live.logs(settled, level="WARNING"))
    assert live.logs(settled, after=after).records == ()


def test_an_invalid_log_query_is_refused(live: Holdfast, settled: str) -> None:
    with pytest.raises(RunNotFound):
        live.logs("nothing")
    with pytest.raises(InvalidArguments, match="level must be one of"):
        live.logs(settled, level="LOUD")
    with pytest.raises(InvalidArguments, match="cursor"):
        live.logs(settled, after="made-up")
    with pytest.raises(InvalidArguments):
        live.logs(settled, limit=0)
    other = live.logs(chatty_too(live)).next
    with pytest.raises(InvalidArguments, match="cursor"):
        live.logs(settled, after=other)


def chatty_too(hf: Holdfast) -> str:
    return hf.submit("chatty").id


def test_a_log_page_is_bounded_however_long_the_log_is(
    live: Holdfast, settled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAGE", 2)
    monkeypatch.setattr(logs, "BUDGET", 4)
    first = live.logs(settled, text="nothing like that")
    assert first.records == ()
    assert first.more
    assert live.logs(settled, text="info 2", after=first.next).more
