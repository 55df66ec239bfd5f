"""Bulk actions: cancel or run again every run that matches a filter, as a background run; and `hf.bulk`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from holdfast.builds import builds
from holdfast.jobs.context import Context
from holdfast.jobs.job import Job
from holdfast.jobs.options import Options
from holdfast.jobs.registry import BULK, OPERATIONS, OWN
from holdfast.jobs.submitter import Submitter
from holdfast.operate.run_again import run_again
from holdfast.operate.search import count_runs, search_runs
from holdfast.runs import audit, steps
from holdfast.runs.cancel import cancel_by_hand
from holdfast.runs.handle import Run
from holdfast.runs.lease import require_attempt
from holdfast.runs.submit import submit_one
from holdfast.runtime import Runtime
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.errors import (
    BuildNotFound,
    InvalidArguments,
    InvalidPolicy,
    QueueFull,
    RunNotFound,
    StoreBusy,
    StoreUnavailable,
    Unreadable,
)
from holdfast.values.filters import ENDED, OPEN, Count, RunFilter
from holdfast.values.policies import Policy
from holdfast.values.retries import Retry, TryAgain
from holdfast.values.runs import Snapshot, Step


class Bulk:
    """Each of these is a run that any worker takes up; its result says how many matched, were done and were skipped.

    Runs that are submitted after it, and bulks themselves, are not meant.
    """

    def __init__(self, runtime: Runtime, handle: Callable[[str], Run[Any]]) -> None:
        self._runtime, self._handle = runtime, handle

    def cancel(self, filter: RunFilter, *, reason: str = "cancelled", by: str | None = None) -> Run[dict[str, int]]:
        """Cancel every run that the filter means and that has not ended."""
        return self._submit(CANCEL, filter, by, reason=reason)

    def again(self, filter: RunFilter, *, by: str | None = None) -> Run[dict[str, int]]:
        """Submit every run that the filter means and that has ended once more, each once.

        Runs of jobs with `only_from_code` are skipped; a filter that names such a job is refused.
        """
        if isinstance(filter, RunFilter) and filter.job is not None:
            self._runtime.jobs.require_open(filter.job)
        return self._submit(AGAIN, filter, by)

    def counts(self, filter: RunFilter) -> Mapping[str, Count]:
        """How many runs `cancel` and `again` would be about now."""
        names = {"cancel": CANCEL, "again": AGAIN}
        fits = {verb: filter.state is None or filter.state in states_of(name) for verb, name in names.items()}
        return self._runtime.read(
            lambda tx: {
                verb: counted(tx, meant_by(name, filter)) if fits[verb] else Count(0, False)
                for verb, name in names.items()
            }
        )

    def _submit(self, name: str, filter: RunFilter, by: str | None, **more: str) -> Run[dict[str, int]]:
        if not isinstance(filter, RunFilter):
            raise InvalidArguments(f"a filter is a RunFilter, not {filter!r}")
        meant_by(name, filter)
        audit.check(by)
        runtime, job = self._runtime, self._runtime.jobs[name]
        runtime.start()
        given: dict[str, Any] = {"filter": filter.to_json(), "by": by, **more}
        now = runtime.clock.now()
        draft = job.draft(job.options, (), given, now=now)

        def submit(tx: Transaction) -> str:
            run_id = submit_one(tx, draft(tx.new_id, None))
            audit.record(tx, by, name.rpartition(".")[2], run_id=run_id, filter=filter.to_json(), **more)
            return run_id

        return self._handle(runtime.do(submit))


CANCEL, AGAIN = BULK


PAGE = 50


# A full queue makes it wait as often as it must; a database that is away is waited for too.
_POLICY = Policy(
    timeout=None,
    max_attempts=100_000,
    max_takeovers=100_000,
    retry=Retry(on=(StoreBusy, StoreUnavailable)),
)


Act = Callable[[Transaction, Snapshot], bool]
"""Do it to one run; False: there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Done:
    """How far a bulk is: so many `pages` and whole `rounds` have been done, the next page begins after `next`."""

    pages: int = 0
    rounds: int = 0
    next: str | None = None
    matched: int = 0
    done: int = 0
    skipped: int = 0


def job(submitter: Submitter, name: str) -> Job[..., Any]:
    """One of the jobs that every Holdfast has, by its name."""
    matching = Matching(submitter.runtime)
    functions: dict[str, Callable[..., Any]] = {CANCEL: matching.cancel, AGAIN: matching.again}
    options = Options(queue=OPERATIONS, policy=_POLICY)
    return Job(submitter, functions[name], name=name, options=options, isolation="thread")


class Matching:
    """The functions of these jobs."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def cancel(self, ctx: Context, filter: dict[str, Any], reason: str, by: str | None = None) -> dict[str, int]:
        """Cancel every run that the filter means and that has not ended."""
        meant = meant_by(CANCEL, RunFilter.from_json(filter))
        # One that ran when we looked at the queues may have gone back there (a retry) before we looked at what runs.
        rounds = [*meant, *meant[:-1]]

        def act(tx: Transaction, run: Snapshot) -> bool:
            if run.ended or run.cancel_requested_at is not None:
                return False
            return cancel_by_hand(tx, run.id, reason=reason, by=by, bulk=ctx.run.id) in ("cancelled", "running")

        return self._all(ctx, rounds, act, meant=meant)

    def again(self, ctx: Context, filter: dict[str, Any], by: str | None = None) -> dict[str, int]:
        """Submit every run that the filter means and that has ended once more."""
        meant = meant_by(AGAIN, RunFilter.from_json(filter))

        def act(tx: Transaction, run: Snapshot) -> bool:
            if not run.ended or run.kind in ("stage", "segment"):
                return False
            if self._runtime.jobs.refusal(run.job, run.policy) is not None:
                return False
            if run.kind == "build" and builds.get(tx, run.id).run_id > ctx.run.id:
                return False  # someone has it made anew already
            key = f"again of {run.id} by {ctx.run.id}"
            allowed = self._runtime.jobs.require_open
            run_again(tx, run.id, by=by, idempotency_key=key, bulk=ctx.run.id, allowed=allowed)
            return True

        return self._all(ctx, meant, act, meant=meant)

    def _all(
        self, ctx: Context, rounds: Sequence[RunFilter], act: Act, *, meant: Sequence[RunFilter]
    ) -> dict[str, int]:
        done, total = self._runtime.read(lambda tx: _begun(tx, ctx.run.id, meant))
        alone = 0  # so many are done one by one, since one of them stood in the way of its page
        while done.rounds < len(rounds):
            ctx.check()
            try:
                done = self._page(ctx, rounds[done.rounds], act, done, limit=1 if alone else PAGE)
                alone = max(0, alone - 1)
            except _InTheWay:
                alone = PAGE
            ctx.progress(done.matched, total, f"{done.done} done, {done.skipped} skipped")
        return {"matched": done.matched, "done": done.done, "skipped": done.skipped}

    def _page(self, ctx: Context, wanted: RunFilter, act: Act, before: Done, *, limit: int) -> Done:
        page = self._runtime.read(lambda tx: search_runs(tx, wanted, limit=limit, after=before.next, bound=ctx.run.id))
        found = sorted((run for run in page.items if not run.job.startswith(OWN)), key=lambda run: run.id)
        after = replace(before, pages=before.pages + 1, next=page.next, rounds=before.rounds + (page.next is None))
        try:
            return self._runtime.do(lambda tx: _do(tx, ctx, found, act, after))
        except QueueFull as full:
            if limit > 1:
                raise _InTheWay from full
            raise TryAgain(str(full), after=full.retry_after) from full
        except (InvalidPolicy, RunNotFound, BuildNotFound, Unreadable) as error:
            if limit > 1:
                raise _InTheWay from error
            ctx.log.warning("run %s is skipped: %s", found[0].id, error)
            return self._runtime.do(lambda tx: _do(tx, ctx, found, lambda *_: False, after))


class _InTheWay(Exception):
    """One run of a page can't be done: the page is done run by run."""


def _do(tx: Transaction, ctx: Context, found: Sequence[Snapshot], act: Act, done: Done) -> Done:
    """One page, and the step that remembers it."""
    require_attempt(tx, ctx.run.id, ctx.run.attempt)
    acted = sum(act(tx, run) for run in found)
    done = replace(
        done,
        matched=done.matched + len(found),
        done=done.done + acted,
        skipped=done.skipped + len(found) - acted,
    )
    step = Step(
        name=f"page {done.pages}",
        result=json_text.compact(asdict(done)),
        attempt=ctx.run.attempt,
        tries=1,
        started_at=tx.now,
        finished_at=tx.now,
        number=done.pages,
    )
    steps.insert(tx, [(ctx.run.id, step)])
    return done


def _begun(tx: Transaction, run_id: str, meant: Sequence[RunFilter]) -> tuple[Done, int | None]:
    """How far an earlier attempt came, and how many there are in all, if that can be said."""
    last = tx.one("find_last_step", run_id=run_id)
    done = Done() if last is None else Done(**json_text.load(last["result"]))
    left = counted(tx, meant, bound=run_id)
    return done, None if left.more else max(left.number, done.matched)


def counted(tx: Transaction, meant: Sequence[RunFilter], *, bound: str = "~") -> Count:
    """How many runs these filters mean, as far as can be said."""
    each = [count_runs(tx, one, bound=bound) for one in meant]
    return Count(sum(count.number for count in each), any(count.more for count in each))


def meant_by(name: str, wanted: RunFilter) -> Sequence[RunFilter]:
    """What a bulk goes through: one filter for each state that its runs may be in."""
    states, what = states_of(name), "can be cancelled" if name == CANCEL else "can be done again"
    if wanted.state is None:
        return [wanted.in_state(state) for state in states]
    if wanted.state not in states:
        raise InvalidArguments(f"no run that is {wanted.state} {what}; the filter may say {', '.join(states)}")
    return [wanted]


def states_of(name: str) -> tuple[str, ...]:
    """The states in which there is something to do for it."""
    return OPEN if name == CANCEL else ENDED
