"""PostgreSQL for a role with unusual defaults. `./test --all` runs all contracts like this; these tests always run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from tests.contract.builds.test_stale_builds import (
    test_builds_requested_in_any_order_while_they_fail_and_go_stale_block_no_run as test_builds,
)
from tests.contract.limits.test_queue_capacity import (
    test_threads_at_once_fill_a_queue_exactly as test_threads_fill_a_queue_exactly,
)
from tests.contract.limits.test_unique_runs import (
    test_many_threads_replace_an_ended_unique_run_with_one as test_uniques,
)
from tests.contract.schedules.test_slot_claims import (
    test_eight_schedulers_at_once_create_one_run_for_each_slot as test_slots,
)
from tests.contract.worker.test_takeover import (
    test_a_second_exclusive_worker_refuses_to_start_and_names_the_first as test_exclusive_workers,
)
from tests.databases import ODD, Schemas, new_name
from tests.listing import runs_of
from tests.postgres import PostgresServer

from holdfast import Context, Holdfast, QueueFull, RunFilter
from holdfast.store.transaction import Transaction
from holdfast.testing import FakeClock, Manual

__all__ = [
    "test_builds",
    "test_exclusive_workers",
    "test_slots",
    "test_threads_fill_a_queue_exactly",
    "test_uniques",
]


@pytest.fixture
def url(schemas: Schemas, postgres: PostgresServer) -> Iterator[str]:
    with schemas.lend() as found, psycopg.connect(postgres.url, autocommit=True) as admin:
        role = sql.Identifier(found.partition("//")[2].partition("@")[0])
        for name, value in ODD.items():
            admin.execute(sql.SQL("alter role {} set {} = {}").format(role, sql.Identifier(name), sql.Literal(value)))
        try:
            yield found
        finally:
            admin.execute(sql.SQL("alter role {} reset all").format(role))


def test_the_role_has_the_unusual_defaults(url: str) -> None:
    with contextlib.closing(psycopg.connect(url)) as connection:
        for name, value in ODD.items():
            found = connection.execute("select current_setting(%s)", [name]).fetchone()
            assert found == (value,), name


def test_every_transaction_is_read_committed(url: str) -> None:
    with Holdfast(url) as hf:
        store = hf.store
        assert store.do(_isolation) == store.read(_isolation) == "read committed"
        assert store.once(_isolation, write=True) == store.once(_isolation, write=False) == "read committed"


def test_stored_values_come_back_unchanged(url: str) -> None:
    with Holdfast(url) as hf:

        @hf.job(name="work")
        def work(text: str) -> str:
            return text

        text = "ä € 𝄞 \\ ' 0.1"
        with hf.worker():
            assert work.submit(text).result(timeout=20) == text
        run = runs_of(hf)[0]
        assert abs((hf.clock.now() - run.created_at).total_seconds()) < 60
        assert hf.why(run.id) is not None
        assert hf.verify() == []


def test_instants_and_statistics_come_back_unchanged(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    @hf.job(name="work")
    def work(n: int) -> int:
        return n

    hf.queue("default", max_queued=1)
    began = clock.now()
    for n in range(3):
        work.submit(n)
        with pytest.raises(QueueFull) as caught:  # the check reads the times at which the last runs ended
            work.submit(n)
        assert caught.value.retry_after == timedelta(seconds=30 if n == 0 else 1)
        clock.advance(0.125)
        manual.run_all()
    clock.advance(timedelta(minutes=20))
    manual.count_ended()

    hour = timedelta(hours=1)
    page = hf.search(RunFilter(since=began + timedelta(seconds=0.125), until=began + hour))
    assert [run.created_at - began for run in page.items] == [timedelta(seconds=0.25), timedelta(seconds=0.125)]
    assert [point.runs for point in hf.statistics.series(hour).points] == [3]
    assert hf.verify() == []


def test_a_role_that_owns_no_table_works_with_the_documented_privileges(url: str, postgres: PostgresServer) -> None:
    owner, guest = url.partition("//")[2].partition("@")[0], f"guest_{new_name()}"
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(f"create role {guest} login")
        admin.execute(f"alter role {guest} set search_path = {owner}")
        admin.execute(f"grant usage on schema {owner} to {guest}")
        admin.execute(f"grant select, insert, update, delete on all tables in schema {owner} to {guest}")
        try:
            with Holdfast(url.replace(f"//{owner}@", f"//{guest}@"), auto_migrate=False, poll_interval=0.05) as hf:
                _use_most_features(hf)
        finally:
            admin.execute(f"drop owned by {guest}")
            admin.execute(f"drop role {guest}")


def _use_most_features(hf: Holdfast) -> None:
    @hf.job(name="work", key="n", unique="queued", rate="100/s")
    def work(ctx: Context, n: int) -> int:
        ctx.log.info("a line")
        return ctx.step("double", lambda: 2 * n)

    @hf.build(name="image")
    def image(name: str, fingerprint: str) -> None: ...

    hf.queue("default", max_queued=100)
    with hf.worker():
        runs = [work.using(depends_on=[image.request(name="a", fingerprint="f")]).submit(n) for n in range(3)]
        assert [run.result(timeout=30) for run in runs] == [0, 2, 4]
        hf.cancel(work.using(delay=60).submit(9).id)
    assert hf.prune(now=hf.clock.now() + timedelta(days=1000)).runs == 4
    assert hf.verify() == []


def _isolation(tx: Transaction) -> str:
    found: str = tx._session.execute("select current_setting('transaction_isolation')", None)[0][0][0]
    return found
