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
    """Actions on all runs that match a filter. Each is a background run that any worker executes.

    Its result says how many runs matched, how many the action was applied to and how many were skipped. Runs submitted
    later, and other bulk actions, are not affected.
    """

    def __init__(self, runtime: Runtime, handle: Callable[[str], Run[Any]]) -> None:
        self._runtime, self._handle = runtime, handle

    def cancel(self, filter: RunFilter, *, reason: str = "cancelled", by: str | None = None) -> Run[dict[str, int]]:
        """Cancel every matching run that has not ended."""
        return self._submit(CANCEL, filter, by, reason=reason)

    def again(self, filter: RunFilter, *, by: str | None = None) -> Run[dict[str, int]]:
        """Run every matching finished run again, once each.

        Runs of jobs with `only_from_code` are skipped. A filter that names such a job is refused.
        """
        if isinstance(filter, RunFilter) and filter.job is not None:
            self._runtime.jobs.require_open(filter.job)
        return self._submit(AGAIN, filter, by)

    def counts(self, filter: RunFilter) -> Mapping[str, Count]:
        """Count the runs that `cancel` and `again` would affect now."""
        names = {"cancel": CANCEL, "again": AGAIN}
        fits = {verb: filter.state is None or filter.state in states_of(name) for verb, name in names.items()}
        return self._runtime.read(
            lambda tx: {
                verb: count_matching(tx, filters_for(name, filter)) if fits[verb] else Count(0, False)
                for verb, name in names.items()
            }
        )

    def _submit(self, name: str, filter: RunFilter, by: str | None, **more: str) -> Run[dict[str, int]]:
        if not isinstance(filter, RunFilter):
            raise InvalidArguments(f"the filter must be a RunFilter, not {filter!r}")
        filters_for(name, filter)
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


# A full queue may delay a bulk action any number of times, and the action waits while the database can't be reached.
_POLICY = Policy(
    timeout=None,
    max_attempts=100_000,
    max_takeovers=100_000,
    retry=Retry(on=(StoreBusy, StoreUnavailable)),
)


Act = Callable[[Transaction, Snapshot], bool]
"""Applies the action to one run; returns False if there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Done:
    """The progress of a bulk action: the `pages` and whole `rounds` done so far; the next page starts after `next`."""

    pages: int = 0
    rounds: int = 0
    next: str | None = None
    matched: int = 0
    done: int = 0
    skipped: int = 0


def job(submitter: Submitter, name: str) -> Job[..., Any]:
    """Return the job of a bulk action by its name. Every Holdfast application has these jobs."""
    matching = Matching(submitter.runtime)
    functions: dict[str, Callable[..., Any]] = {CANCEL: matching.cancel, AGAIN: matching.again}
    options = Options(queue=OPERATIONS, policy=_POLICY)
    return Job(submitter, functions[name], name=name, options=options, isolation="thread")


class Matching:
    """The functions of the jobs: they go through the matching runs, page by page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def cancel(self, ctx: Context, filter: dict[str, Any], reason: str, by: str | None = None) -> dict[str, int]:
        """Cancel every matching run that has not ended."""
        filters = filters_for(CANCEL, RunFilter.from_json(filter))
        # A run may have been running while we read the queued ones, and queued again (for a retry) before we read the
        # running ones. So the queued ones are read a second time.
        rounds = [*filters, *filters[:-1]]

        def act(tx: Transaction, run: Snapshot) -> bool:
            if run.ended or run.cancel_requested_at is not None:
                return False
            return cancel_by_hand(tx, run.id, reason=reason, by=by, bulk=ctx.run.id) in ("cancelled", "running")

        return self._all(ctx, rounds, act, filters=filters)

    def again(self, ctx: Context, filter: dict[str, Any], by: str | None = None) -> dict[str, int]:
        """Run every matching finished run again."""
        filters = filters_for(AGAIN, RunFilter.from_json(filter))

        def act(tx: Transaction, run: Snapshot) -> bool:
            if not run.ended or run.kind in ("stage", "segment"):
                return False
            if self._runtime.jobs.refusal(run.job, run.policy) is not None:
                return False
            if run.kind == "build" and builds.get(tx, run.id).run_id > ctx.run.id:
                return False  # it has been rebuilt since this action was submitted
            key = f"again of {run.id} by {ctx.run.id}"
            allowed = self._runtime.jobs.require_open
            run_again(tx, run.id, by=by, idempotency_key=key, bulk=ctx.run.id, allowed=allowed)
            return True

        return self._all(ctx, filters, act, filters=filters)

    def _all(
        self, ctx: Context, rounds: Sequence[RunFilter], act: Act, *, filters: Sequence[RunFilter]
    ) -> dict[str, int]:
        done, total = self._runtime.read(lambda tx: _load_progress(tx, ctx.run.id, filters))
        singly = 0  # how many runs are still done one by one, because one run made its whole page fail
        while done.rounds < len(rounds):
            ctx.check()
            try:
                done = self._page(ctx, rounds[done.rounds], act, done, limit=1 if singly else PAGE)
                singly = max(0, singly - 1)
            except _PageFailed:
                singly = PAGE
            ctx.progress(done.matched, total, f"{done.done} done, {done.skipped} skipped")
        return {"matched": done.matched, "done": done.done, "skipped": done.skipped}

    def _page(self, ctx: Context, wanted: RunFilter, act: Act, before: Done, *, limit: int) -> Done:
        page = self._runtime.read(lambda tx: search_runs(tx, wanted, limit=limit, after=before.next, bound=ctx.run.id))
        runs = sorted((run for run in page.items if not run.job.startswith(OWN)), key=lambda run: run.id)
        after = replace(before, pages=before.pages + 1, next=page.next, rounds=before.rounds + (page.next is None))
        try:
            return self._runtime.do(lambda tx: _do(tx, ctx, runs, act, after))
        except QueueFull as full:
            if limit > 1:
                raise _PageFailed from full
            raise TryAgain(str(full), after=full.retry_after) from full
        except (InvalidPolicy, RunNotFound, BuildNotFound, Unreadable) as error:
            if limit > 1:
                raise _PageFailed from error
            ctx.log.warning("run %s was skipped: %s", runs[0].id, error)
            return self._runtime.do(lambda tx: _do(tx, ctx, runs, lambda *_: False, after))


class _PageFailed(Exception):
    """The action failed for one run of a page, so the page is repeated run by run."""


def _do(tx: Transaction, ctx: Context, runs: Sequence[Snapshot], act: Act, done: Done) -> Done:
    """Apply the action to one page, and store the progress as a step in the same transaction."""
    require_attempt(tx, ctx.run.id, ctx.run.claim)
    acted = sum(act(tx, run) for run in runs)
    done = replace(
        done,
        matched=done.matched + len(runs),
        done=done.done + acted,
        skipped=done.skipped + len(runs) - acted,
    )
    step = Step(
        name=f"page {done.pages}",
        result=json_text.compact(asdict(done)),
        claim=ctx.run.claim,
        attempts=1,
        started_at=tx.now,
        finished_at=tx.now,
        number=done.pages,
    )
    steps.insert(tx, [(ctx.run.id, step)])
    return done


def _load_progress(tx: Transaction, run_id: str, filters: Sequence[RunFilter]) -> tuple[Done, int | None]:
    """Return the progress of an earlier attempt, and the number of matching runs if it is known."""
    last = tx.one("find_last_step", run_id=run_id)
    done = Done() if last is None else Done(**json_text.load(last["result"]))
    left = count_matching(tx, filters, bound=run_id)
    return done, None if left.more else max(left.number, done.matched)


def count_matching(tx: Transaction, filters: Sequence[RunFilter], *, bound: str = "~") -> Count:
    """Count the runs that match these filters; `more` is true if there are more than were counted."""
    counts = [count_runs(tx, one, bound=bound) for one in filters]
    return Count(sum(count.number for count in counts), any(count.more for count in counts))


def filters_for(name: str, wanted: RunFilter) -> Sequence[RunFilter]:
    """Return the filters that a bulk action goes through: one for each state that it applies to."""
    states, action = states_of(name), "cancelled" if name == CANCEL else "run again"
    if wanted.state is None:
        return [wanted.in_state(state) for state in states]
    if wanted.state not in states:
        allowed = ", ".join(states)
        raise InvalidArguments(f"runs in state {wanted.state} can't be {action}; use one of the states {allowed}")
    return [wanted]


def states_of(name: str) -> tuple[str, ...]:
    """Return the states that a bulk action applies to."""
    return OPEN if name == CANCEL else ENDED
