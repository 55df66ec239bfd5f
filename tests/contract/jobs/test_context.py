"""The context: what a job can read about its run, and the fence for its own writes."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast import Context, Holdfast, Retry
from holdfast.store.queries import statements
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("S3")
def test_a_job_can_read_its_run(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    seen: list[Any] = []

    @hf.job(name="work", queue="mail", key="{name}", timeout=60)
    def work(ctx: Context, name: str) -> None:
        seen.append(ctx.run)

    first = work.using(tags={"tenant": "t1"}).submit("a")
    created = clock.now()
    clock.advance(10)
    manual.run_all()
    again = first.again()
    manual.run_all()

    info = seen[0]
    assert (info.id, info.job, info.queue, info.key, info.tags) == (first.id, "work", "mail", "a", {"tenant": "t1"})
    assert (info.claim, info.attempt, info.again_of) == (1, 1, None)
    assert (info.created_at, info.started_at) == (created, clock.now())
    assert info.deadline_at is not None
    assert (info.deadline_at - info.started_at).total_seconds() == 60
    assert (seen[1].id, seen[1].again_of) == (again.id, first.id)


@pytest.mark.contract("L5")
def test_the_fence_grows_with_every_claim(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """Applications use the fence in conditional writes: `where fence < :claim`."""
    tokens: list[tuple[str, int]] = []

    @hf.job(name="work", max_attempts=3, retry=Retry(jitter=0))
    def work(ctx: Context) -> None:
        tokens.append((ctx.fence.run_id, ctx.fence.claim))
        assert str(ctx.fence) == f"{ctx.run.id}:{ctx.run.claim}"
        raise ValueError

    run = work.submit()
    manual.worker("lost").claim()
    clock.advance(2 * hf.settings.lease)
    for _ in range(3):
        manual.run_all()
        clock.advance(60)
    assert tokens == [(run.id, 2), (run.id, 3), (run.id, 4)]


@pytest.mark.contract("S3")
def test_a_plain_call_has_a_context_that_stores_nothing(hf: Holdfast, database: Database) -> None:
    calls: list[str] = []

    def flaky() -> str:
        calls.append("flaky")
        if len(calls) == 1:
            raise ConnectionError
        return "ok"

    @hf.job(name="work")
    def work(ctx: Context, name: str) -> str:
        ctx.progress(1, 2)
        ctx.check()
        assert ctx.artifact("out.txt", "content").read() == b"content"
        assert not ctx.cancelled
        return f"{name} {ctx.step('one', flaky)} {ctx.run.claim}"

    hf.start()
    before = database.counts()
    assert work("a") == "a ok 1"
    assert work(name="b") == "b ok 1"
    assert calls == ["flaky", "flaky", "flaky"]
    assert database.counts() == before


@pytest.mark.contract("P4")
def test_only_a_claim_can_start_a_run() -> None:
    """Only `claim_runs` uses the statement that inserts leases, and no other statement inserts any."""
    root = Path(holdfast.__file__).parent
    writers = {
        (str(path.relative_to(root)), function.name)
        for path in root.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and node.value == "insert_leases"
    }
    assert writers == {("runs/claim.py", "claim_runs")}
    assert {one.name for one in statements() if "insert into holdfast_leases" in one.text} == {"insert_leases"}
