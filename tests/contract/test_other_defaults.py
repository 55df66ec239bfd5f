"""PostgreSQL for a role with other defaults. `./test --all` runs all contracts on such a server; these run always."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from tests.contract.test_bounds import test_threads_at_once_fill_a_queue_exactly as test_threads_fill_a_queue_exactly
from tests.contract.test_outdated_builds import (
    test_builds_asked_for_in_every_order_while_they_fail_and_go_stale_hold_no_one_up as test_builds,
)
from tests.contract.test_slot_claims import test_eight_schedulers_at_once_give_each_slot_one_run as test_slots
from tests.contract.test_taking_over import (
    test_a_second_exclusive_worker_refuses_and_names_the_first as test_exclusive_workers,
)
from tests.contract.test_uniques import test_many_threads_replace_one_that_ended_by_one as test_uniques
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


def test_the_role_has_these_defaults(url: str) -> None:
    with contextlib.closing(psycopg.connect(url)) as connection:
        for name, value in ODD.items():
            found = connection.execute("select current_setting(%s)", [name]).fetchone()
            assert found == (value,), name


def test_every_statement_of_ours_is_read_committed(url: str) -> None:
    with Holdfast(url) as hf:
        store = hf.store
        assert store.do(_isolation) == store.read(_isolation) == "read committed"
        assert store.once(_isolation, write=True) == store.once(_isolation, write=False) == "read committed"


def test_what_is_stored_comes_back_as_it_was(url: str) -> None:
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


def test_instants_and_figures_come_back_as_they_were(hf: Holdfast, clock: FakeClock, manual: Manual) -> None:
    @hf.job(name="work")
    def work(n: int) -> int:
        return n

    hf.queue("default", max_queued=1)
    began = clock.now()
    for n in range(3):
        work.submit(n)
        with pytest.raises(QueueFull) as caught:  # it reads when the last runs ended
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


def test_a_role_that_owns_no_table_works_with_the_documented_rights(url: str, postgres: PostgresServer) -> None:
    owner, guest = url.partition("//")[2].partition("@")[0], f"guest_{new_name()}"
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(f"create role {guest} login")
        admin.execute(f"alter role {guest} set search_path = {owner}")
        admin.execute(f"grant usage on schema {owner} to {guest}")
        admin.execute(f"grant select, insert, update, delete on all tables in schema {owner} to {guest}")
        try:
            with Holdfast(url.replace(f"//{owner}@", f"//{guest}@"), migrate=False, tick=0.05) as hf:
                _use_most_of(hf)
        finally:
            admin.execute(f"drop owned by {guest}")
            admin.execute(f"drop role {guest}")


def _use_most_of(hf: Holdfast) -> None:
    @hf.job(name="work", key="n", unique="queued", rate="100/s")
    def work(ctx: Context, n: int) -> int:
        ctx.log.info("a line")
        return ctx.step("double", lambda: 2 * n)

    @hf.build(name="image")
    def image(name: str, fingerprint: str) -> None: ...

    hf.queue("default", max_queued=100)
    with hf.worker():
        runs = [work.using(after=[image.of(name="a", fingerprint="f")]).submit(n) for n in range(3)]
        assert [run.result(timeout=30) for run in runs] == [0, 2, 4]
        hf.cancel(work.using(delay=60).submit(9).id)
    assert hf.retain(now=hf.clock.now() + timedelta(days=1000)).runs == 4
    assert hf.verify() == []


def _isolation(tx: Transaction) -> str:
    found: str = tx._session.execute("select current_setting('transaction_isolation')", None)[0][0][0]
    return found
