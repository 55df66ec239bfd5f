"""Callers' PostgreSQL transactions above READ COMMITTED, or on connections with their own settings.

Such a transaction does not see what others commit while it is open. A submission that reads no rows of others works;
`unique` and a bounded queue need to read such rows, so they are refused.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.contract.caller_transaction.callers import caller
from tests.listing import runs_of

from holdfast import Context, Holdfast, QueueFull, RunFailed, StoreBusy, UnknownDependency, WrongConnection
from holdfast.jobs.job import Job
from holdfast.testing import Manual

WAYS = ["psycopg", "psycopg connection", "psycopg async session", "asyncpg session"]
SNAPSHOTS = ["REPEATABLE READ", "SERIALIZABLE"]
OPTIONS = (
    "-c datestyle=SQL,DMY -c timezone=Asia/Kathmandu -c intervalstyle=sql_standard -c extra_float_digits=0 "
    "-c client_encoding=UTF8"
)


@pytest.mark.contract("S2")
@pytest.mark.parametrize("isolation", SNAPSHOTS)
@pytest.mark.parametrize("way", WAYS)
def test_submissions_that_write_only_their_own_rows_work_at_any_isolation_level(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, isolation: str
) -> None:
    made = []

    @hf.build(name="image")
    def image(name: str, fingerprint: str) -> None:
        made.append(name)

    before = job.submit("before")

    async def scenario() -> list[Any]:
        async with caller(way, url, isolation) as tx:
            await tx.execute("select 1")
            job.submit("submitted meanwhile")
            runs = [
                await tx.submit(job, "plain"),
                await tx.submit(job, "keyed", key="name"),
                await tx.submit(job, "delayed", delay=timedelta(microseconds=1)),
                await tx.submit(job, "dependent", depends_on=[before]),
                await tx.submit(job, "built", depends_on=[image.request(name="a", fingerprint="f")]),
                await tx.submit(job, "idempotent", idempotency_key="i"),
                *await job.using(connection=tx.connection).asubmit_many([{"name": "many"}]),
            ]
            again = await tx.submit(job, "idempotent", idempotency_key="i")
            assert again.id == runs[5].id
            await tx.commit()
            return runs

    runs = asyncio.run(scenario())
    Manual(hf).run_all()
    names = ["plain", "keyed", "delayed", "dependent", "built", "idempotent", "many"]
    assert [hf.get(run.id).result(timeout=1) for run in runs] == names
    assert made == ["a"]
    assert hf.verify() == []


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("isolation", SNAPSHOTS)
@pytest.mark.parametrize("way", WAYS)
def test_an_idempotency_key_taken_since_the_snapshot_aborts_the_transaction_and_is_found_by_the_next(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, isolation: str
) -> None:
    async def scenario() -> None:
        async with caller(way, url, isolation) as tx:
            await tx.execute("select count(*) from holdfast_runs")
            existing = job.using(idempotency_key="i").submit("a")
            with pytest.raises(StoreBusy, match="begin it again"):
                await tx.submit(job, "a", idempotency_key="i")
        async with caller(way, url, isolation) as tx:
            assert (await tx.submit(job, "a", idempotency_key="i")).id == existing.id
            await tx.commit()

    asyncio.run(scenario())
    assert len(runs_of(hf)) == 1
    assert hf.verify() == []


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("isolation", SNAPSHOTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_submission_that_must_see_other_rows_is_refused_and_leaves_the_transaction_usable(
    hf: Holdfast, url: str, job: Job[[str], str], way: str, isolation: str
) -> None:
    hf.queue("narrow", max_queued=1)

    async def scenario() -> None:
        async with caller(way, url, isolation) as tx:
            await tx.execute("select count(*) from holdfast_runs")
            since = job.submit("since")
            bounded = job.using(queue="narrow").submit("fills the queue and changes its row")
            Manual(hf).run_all()
            with pytest.raises(WrongConnection, match=f"unique .* READ COMMITTED, and it is {isolation}"):
                await tx.submit(job, "since", unique="queued")
            with pytest.raises(WrongConnection, match=f"bounded queue narrow .* and it is {isolation}"):
                await tx.submit(job, "a", queue="narrow")
            with pytest.raises(UnknownDependency, match=f"{isolation} and sees no run submitted since it began"):
                await tx.submit(job, "a", depends_on=[since])
            await tx.submit(job, "plain")
            await tx.commit()
            assert bounded.refresh().state == "succeeded"

    asyncio.run(scenario())
    Manual(hf).run_all()
    assert "plain" in [run.args["name"] for run in runs_of(hf)]
    assert len(runs_of(hf)) == 3
    assert hf.verify() == []


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("isolation", SNAPSHOTS)
@pytest.mark.parametrize("way", ["psycopg"])
def test_a_run_cannot_be_finished_in_a_snapshot_transaction(hf: Holdfast, url: str, isolation: str) -> None:
    @hf.job(name="write")
    def write(ctx: Context) -> None:
        with psycopg.connect(url) as connection:
            connection.set_isolation_level(psycopg.IsolationLevel[isolation.replace(" ", "_")])
            ctx.finish(connection=connection)

    runs = [write.submit()]
    Manual(hf).run_all()
    runs.append(write.submit())
    with hf.worker():
        for run in runs:
            with pytest.raises(RunFailed, match=f"to finish a run .* READ COMMITTED, and it is {isolation}"):
                run.result(timeout=20)


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", WAYS)
def test_connection_settings_of_the_caller_do_not_disturb_a_submission_and_are_kept(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    hf.queue("narrow", max_queued=1)
    job.using(queue="narrow").submit("first")
    Manual(hf).run_all()
    job.using(queue="narrow").submit("second")

    async def scenario() -> None:
        async with caller(way, url, "READ COMMITTED", options=OPTIONS) as tx:
            names = ("datestyle", "timezone", "intervalstyle", "extra_float_digits", "transaction_isolation")
            before = [await tx.execute(f"select current_setting('{name}')") for name in names]
            assert before == ["SQL, DMY", "Asia/Kathmandu", "sql_standard", "0", "read committed"]
            await tx.submit(job, "ä €", key="name", unique="queued", delay=timedelta(microseconds=1))
            with pytest.raises(QueueFull):  # the check reads the times at which runs of the queue ended
                await tx.submit(job, "third", queue="narrow")
            assert [await tx.execute(f"select current_setting('{name}')") for name in names] == before
            await tx.commit()

    asyncio.run(scenario())
    Manual(hf).run_all()
    assert {run.args["name"] for run in runs_of(hf)} == {"first", "second", "ä €"}
    assert hf.verify() == []


@pytest.mark.contract("S2", "S4")
@pytest.mark.parametrize("way", [way for way in WAYS if "asyncpg" not in way])  # asyncpg always uses UTF-8
def test_a_character_that_the_callers_encoding_lacks_is_refused_and_leaves_the_transaction_usable(
    hf: Holdfast, url: str, job: Job[[str], str], way: str
) -> None:
    async def scenario() -> None:
        async with caller(way, url, "READ COMMITTED", options="-c client_encoding=LATIN1") as tx:
            with pytest.raises(WrongConnection, match="'€': set client_encoding to UTF8"):
                await tx.submit(job, "€")
            await tx.submit(job, "ä")
            await tx.commit()

    asyncio.run(scenario())
    assert [run.args["name"] for run in runs_of(hf)] == ["ä"]


@pytest.mark.contract("S2")
@pytest.mark.parametrize("way", ["psycopg"])
def test_a_connection_may_have_its_own_cursor_and_row_factories(url: str, hf: Holdfast, job: Job[[str], str]) -> None:
    """Like the connections of Django, which binds parameters on the client."""
    kinds: dict[str, Any] = {"cursor_factory": psycopg.ClientCursor, "row_factory": psycopg.rows.dict_row}
    with psycopg.connect(url, **kinds) as connection:
        first = job.using(connection=connection, idempotency_key="i").submit("a")
        assert job.using(connection=connection, idempotency_key="i").submit("a").id == first.id
    Manual(hf).run_all()
    assert first.result(timeout=1) == "a"
