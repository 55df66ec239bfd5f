"""Submit: validate, admit, resolve builds, insert, make ready or waiting, answer.

    submit ──▶ ready                      the run can start at once
           ──▶ waits                      it waits for a time, other runs or its key; every stage of a pipeline waits

The row of a run is inserted once and not updated, with one exception: a build requested in a caller transaction is
filled in when its run exists. The current state of the run is a row in exactly one other table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias, TypeVar

from holdfast.runs import audit, ready
from holdfast.runs.build_once import BuildMatch, BuildRun, get_or_create
from holdfast.runs.limits import capacity
from holdfast.runs.limits.admission import (
    Admission,
    capacity_expected,
    capacity_request_of,
    check_admission,
    register_unique,
)
from holdfast.runs.limits.keys import take_key_locks
from holdfast.runs.submission import Pending, Submission, arguments_of, build_request_rows, stored, with_builds
from holdfast.runs.waiting import Wait, add_waiting
from holdfast.store.caller_transaction import isolation_of
from holdfast.store.dialects.base import Conflict
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, IdempotencyConflict, QueueFull, UnknownDependency
from holdfast.values.builds import BuildRequest

T = TypeVar("T")

Answers: TypeAlias = dict[str, str | HoldfastError]
"""For each submission, by its id: the id of its run, or the error that refused it."""


PATIENCE = timedelta(milliseconds=200)
# A lock that this process holds may belong to the same thread that waits for it.
OWN_PATIENCE = timedelta(seconds=2)


def submit_together(store: Store, pending: Sequence[Pending]) -> list[str | HoldfastError]:
    """Submit in one transaction of our own; return for each the id of its run, or the error that refused it."""
    patience = PATIENCE if store.dialect.locks_rows else None
    with store.reserved():
        answers = _write(store, pending, lambda tx: submit_pending(tx, pending), patience=patience)
    count_refusals(store, answers, write=True)
    return answers


def submit_whole(store: Store, pending: Sequence[Pending]) -> list[str]:
    """Submit all of them in one transaction of our own, or none."""
    try:
        return _write(store, pending, lambda tx: submit_all(tx, pending))
    except QueueFull as error:
        count_refusals(store, [error], write=True)
        raise


def submit_all(tx: Transaction, pending: Sequence[Pending]) -> list[str]:
    """Submit all of them and return their ids, or raise the error of the first that was refused."""
    ids: list[str] = []
    for answer in submit_pending(tx, pending, whole=True):
        if isinstance(answer, HoldfastError):
            raise answer
        ids.append(answer)
    return ids


def submit_pending(tx: Transaction, pending: Sequence[Pending], *, whole: bool = False) -> list[str | HoldfastError]:
    first = not any(one.sent for one in pending)
    return submit_runs(tx, [one.within(tx) for one in pending], first=first, whole=whole)


def count_refusals(store: Store, answers: Sequence[object], *, write: bool) -> None:
    """Count the submissions that a full queue refused; `write` flushes the counters now instead of later."""
    refused = [answer for answer in answers if isinstance(answer, QueueFull)]
    for full in refused:
        store.counters.add("queue_rejected", full.queue)
    if refused and write:
        store.counters.flush()


def _write(
    store: Store, pending: Sequence[Pending], verb: Callable[[Transaction], T], *, patience: timedelta | None = None
) -> T:
    """Run `verb`. If it may have been committed, mark the submissions as sent, so that a retry reuses their ids."""
    committing = False

    def tracked(tx: Transaction) -> T:
        nonlocal committing
        committing = False
        answer = verb(tx)
        committing = True
        return answer

    try:
        return store.do(tracked, patience=patience, own_patience=OWN_PATIENCE)
    finally:
        for one in pending:
            one.sent = one.sent or committing


def submit_one(tx: Transaction, submission: Submission) -> str:
    """Submit one run and return its id, or raise the error that refused it."""
    [answer] = submit_runs(tx, [submission])
    if isinstance(answer, HoldfastError):
        raise answer
    return answer


def submit_runs(
    tx: Transaction, submissions: Sequence[Submission], *, first: bool = False, whole: bool = False
) -> list[str | HoldfastError]:
    """Return for each submission the id of its run, or the error that refused it.

    A refused submission writes nothing. `first` means that these ids were never sent before, so that none of them can
    be in the database already. `whole` means that the caller wants all of these runs or none.
    """
    if first and _is_plain(tx, submissions):
        return _submit_plain(tx, submissions)
    answers: Answers = {}
    known = _validate(tx, submissions, answers)
    admission, admitted = _admit(tx, known, answers, refuse_all=whole and len(known) < len(submissions), whole=whole)
    builds, runs, new = _resolve_builds(tx, admitted, answers, first=first)
    inserted = _insert(tx, runs, answers, counted=admission.counted)
    if not new <= {run.run_id for run in inserted}:
        # Another transaction has just committed the same run. Roll back, so that no build of ours remains, and retry.
        raise Conflict("another transaction has just submitted the same run with its builds")
    family = [member for run in inserted for member in run.family]
    if family:
        tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in family], counted=1)
    place_runs(tx, [*family, *inserted], bounded=None if family else admission.bounded)
    written = {run.run_id for run in inserted} | {build.run_id for build in builds.values()}
    audit.record_submissions(tx, [s for s in submissions if s.run_id in written])
    return [answers.get(s.run_id, s.run_id) for s in submissions]


def _is_plain(tx: Transaction, submissions: Sequence[Submission]) -> bool:
    """Return whether nothing can refuse or replace any of them, so that they can be inserted without checks."""
    if any(s.dependencies or s.build_requests or s.build or s.idempotency_key or s.unique for s in submissions):
        return False
    return tx.owned and not capacity_expected(tx, {s.queue for s in submissions})


def _submit_plain(tx: Transaction, submissions: Sequence[Submission]) -> list[str | HoldfastError]:
    tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in submissions], counted=0)
    place_runs(tx, submissions, bounded={})
    audit.record_submissions(tx, submissions)
    return [s.run_id for s in submissions]


def _validate(tx: Transaction, submissions: Sequence[Submission], answers: Answers) -> list[Submission]:
    """Return the submissions whose dependencies all exist."""
    depends_on = {depends_on for submission in submissions for depends_on in submission.required_runs}
    unknown = depends_on - {row["id"] for row in tx.all("share_runs", ids=sorted(depends_on))} if depends_on else set()
    for submission in submissions:
        if missing := unknown & submission.required_runs:
            answers[submission.run_id] = UnknownDependency(
                f"depends_on: there is no run {', '.join(sorted(missing))}{_unseen(tx)}"
            )
    return [s for s in submissions if s.run_id not in answers]


def _admit(
    tx: Transaction, submissions: Sequence[Submission], answers: Answers, *, whole: bool, refuse_all: bool
) -> tuple[Admission, list[Submission]]:
    """Return the submissions that need a new run and have room in their queue. Builds are always admitted."""
    candidates = [s for s in submissions if s.build is None]
    admission = check_admission(tx, candidates, repeated=lambda: _repeated(tx, candidates))
    if refuse_all or (whole and admission.refused):
        submissions, left = [], []
    else:
        # A submission whose idempotency key has a run creates no run, so it must not be registered as unique.
        both = [s for s in candidates if s.unique and s.idempotency_key]
        existing = _repeated(tx, both) if both else set()
        left = [s for s in candidates if s.run_id not in existing]
    register_unique(tx, left, admission)
    for submission in candidates:
        first = admission.same.get(submission.run_id, submission.run_id)
        if (refused := admission.refused.get(first)) is not None:
            answers[submission.run_id] = refused
        elif not admission.admits(submission.run_id):
            answers[submission.run_id] = admission.given.get(first, first)
    return admission, [s for s in submissions if admission.admits(s.run_id)]


def _resolve_builds(
    tx: Transaction, submissions: Sequence[Submission], answers: Answers, *, first: bool
) -> tuple[dict[BuildRequest, BuildMatch], list[Submission], set[str]]:
    """Get or create the requested builds, and replace them with their runs in the submissions.

    Return the builds, the submissions, and the ids of the submissions for which it got or created builds. Unless
    all of these submissions become new runs, the caller rolls back. In a caller transaction, an orchestrator gets or
    creates the builds later.
    """
    found: dict[BuildRequest, BuildMatch] = {}
    new: list[Submission] = []
    requesting = [s for s in submissions if s.build_requests or s.build]
    if requesting and tx.owned:
        maybe_repeated = [s for s in requesting if s.idempotency_key is not None or not first]
        repeated = _repeated(tx, maybe_repeated) | _later(submissions) if maybe_repeated else set()
        new = [s for s in requesting if s.run_id not in repeated]
        offered = {s.build: s.run_id for s in new if s.build}
        # A build that several submissions request belongs to the trace of the first.
        traces = {
            request: s.traceparent
            for s in reversed(new)
            for request in (*s.build_requests, *((s.build,) if s.build else ()))
        }
        build_requests = [*(request for s in new for request in s.build_requests), *offered]
        found = get_or_create(tx, build_requests, make=partial(submit_builds, traces=traces), offered=offered)
    answers |= {s.run_id: found[s.build].run_id for s in submissions if s.build in found}
    runs = [with_builds(s, found) for s in submissions if s.build is None]
    return found, runs, {s.run_id for s in new if not s.build}


def _insert(tx: Transaction, submissions: Sequence[Submission], answers: Answers, *, counted: bool) -> list[Submission]:
    """Insert the submissions whose id and idempotency key are new, and return them."""
    rows = [stored(s, tx.created_at) for s in sorted(submissions, key=lambda s: s.run_id)]
    new = {row["id"] for row in tx.all("insert_runs", rows=rows, counted=int(counted))} if rows else set()
    answers |= _existing(tx, [s for s in submissions if s.run_id not in new])
    return [s for s in submissions if s.run_id in new]


def place_runs(tx: Transaction, submissions: Sequence[Submission], *, bounded: Mapping[str, int] | None = None) -> None:
    """Insert new runs into `ready` if they can start at once, otherwise into `waits`.

    `bounded` maps bounded queues to their capacity, if it is known. A run in a bounded queue uses up capacity.
    """
    counted = [capacity_request_of(s) for s in submissions if s.kind != "build"]
    if counted and bounded is None:
        bounded = capacity.bounds(tx, [replace(request, refusable=False) for request in counted])
    capacity.take(tx, bounded or {}, counted)
    dependencies = sorted(
        (depends_on, s.run_id, int(must)) for s in submissions for depends_on, must in s.dependencies.items()
    )
    if dependencies:
        tx.put(
            "insert_dependencies",
            rows=[dict(zip(("depends_on", "run_id", "must_succeed"), one, strict=True)) for one in dependencies],
        )
    if requests := [row for s in submissions for row in build_request_rows(s)]:
        tx.put("insert_build_requests", rows=sorted(requests, key=lambda row: (row["run_id"], row["number"])))
    free = [s for s in submissions if _is_free(s, tx.now)]
    # Take no key lock in a caller transaction: while it is open, it would block every other submitter of the key.
    wanted: dict[str, str] = {}
    for submission in free if tx.owned else ():
        # With a key_limit above 1, key locks are numbered, and only an orchestrator assigns the numbers.
        if submission.key is not None and submission.policy.key_limit == 1:
            wanted.setdefault(submission.key, submission.run_id)
    may_start = {s.run_id for s in free if s.key is None} | take_key_locks(tx, wanted)
    ready.put(tx, [s.entry for s in submissions if s.run_id in may_start])
    add_waiting(tx, [_wait(s, tx.now) for s in submissions if s.run_id not in may_start])


def submit_builds(
    tx: Transaction, build_runs: Sequence[BuildRun], *, traces: Mapping[BuildRequest, str | None] | None = None
) -> None:
    """Submit the runs of builds. They use up no capacity: a full queue must not block a build that its runs need."""
    submissions = [
        Submission(
            run_id=build_run.run_id,
            job=build_run.request.job,
            queue=build_run.request.queue,
            priority=build_run.request.priority,
            key=build_run.request.key,
            args=build_run.request.args,
            policy=build_run.request.policy,
            tags=build_run.request.tags,
            again_of=build_run.again_of,
            kind="build",
            traceparent=(traces or {}).get(build_run.request),
        )
        for build_run in build_runs
    ]
    tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in submissions], counted=1)
    place_runs(tx, submissions)


def submit_segments(tx: Transaction, submissions: Sequence[Submission]) -> list[str]:
    """Submit the segments of one stage, and return the ids of all of them, whether new or existing."""
    inserted = {
        row["id"] for row in tx.all("insert_runs", rows=[stored(s, tx.created_at) for s in submissions], counted=1)
    }
    place_runs(tx, [s for s in submissions if s.run_id in inserted])
    existing = [s for s in submissions if s.run_id not in inserted]
    if existing:
        names = [s.segment for s in existing]
        rows = tx.all("find_segments", parent_id=existing[0].parent_id, stage=existing[0].stage, names=names)
        inserted |= {row["id"] for row in rows}
    return sorted(inserted)


def _repeated(tx: Transaction, submissions: Sequence[Submission]) -> set[str]:
    """Return the submissions whose id or idempotency key already has a run."""
    known = {row["id"] for row in tx.all("find_runs", ids=[s.run_id for s in submissions])}
    keys = [{"job": s.job, "idempotency_key": s.idempotency_key} for s in submissions if s.idempotency_key]
    used = {(row["job"], row["idempotency_key"]) for row in tx.all("find_idempotent", rows=keys)} if keys else set()
    return known | {s.run_id for s in submissions if (s.job, s.idempotency_key) in used}


def _later(submissions: Sequence[Submission]) -> set[str]:
    """Return the submissions that share an idempotency key with an earlier one of this batch."""
    first: dict[tuple[str, str], str] = {}
    keyed = sorted((s.run_id, (s.job, s.idempotency_key)) for s in submissions if s.idempotency_key)
    return {run_id for run_id, key in keyed if first.setdefault(key, run_id) != run_id}


def _unseen(tx: Transaction) -> str:
    """Return a note for the error message if the isolation of a caller transaction may hide the run."""
    isolation = isolation_of(tx)
    return "" if isolation is None else f"; your transaction is {isolation} and sees no run submitted since it began"


def _existing(tx: Transaction, submissions: Sequence[Submission]) -> dict[str, str | HoldfastError]:
    """Return the existing run, or a conflict, for each submission that was not inserted.

    If a run has the same id, an earlier transaction of ours was committed and its reply was lost.
    """
    if not submissions:
        return {}
    own = {row["id"] for row in tx.all("find_runs", ids=[s.run_id for s in submissions])}
    keys = [{"job": s.job, "idempotency_key": s.idempotency_key} for s in submissions]
    before = {(row["job"], row["idempotency_key"]): row for row in tx.all("find_idempotent", rows=keys)}
    found: dict[str, str | HoldfastError] = {}
    for submission in submissions:
        earlier = before.get((submission.job, submission.idempotency_key))
        if submission.run_id in own:
            found[submission.run_id] = submission.run_id
        elif earlier is not None and _same_arguments(earlier["args"], submission):
            found[submission.run_id] = earlier["id"]
        else:
            found[submission.run_id] = IdempotencyConflict(
                f"idempotency key {submission.idempotency_key!r} of job {submission.job} was used by "
                + (f"run {earlier['id']} with other arguments" if earlier else "a run that is being deleted; try again")
            )
    return found


def _same_arguments(args: str, submission: Submission) -> bool:
    """Return whether a run was submitted with these arguments. A pipeline stores them within its plan."""
    if not submission.family:
        return args == submission.args
    return arguments_of(args) == arguments_of(submission.args)


def _is_free(submission: Submission, now: datetime) -> bool:
    """Return whether the run may start once it has its key. Only an orchestrator makes a stage ready."""
    waits_for_others = (
        submission.dependencies or submission.build_requests or submission.pending_action or submission.kind == "stage"
    )
    return not waits_for_others and (submission.due_at is None or submission.due_at <= now)


def _wait(submission: Submission, now: datetime) -> Wait:
    due_at = submission.due_at if submission.due_at is not None and submission.due_at > now else None
    missing = len(submission.dependencies) + len(submission.build_requests)
    if missing:
        reason = f"waits for {missing} other run{'s' if missing > 1 else ''}"
    elif due_at is not None:
        reason = "delayed"
    elif submission.kind == "stage":
        reason = "waits for the orchestrator"
    else:
        reason = f"waits for key {submission.key}"
    return Wait(
        entry=submission.entry,
        dependencies_left=missing,
        due_at=due_at,
        reason=reason,
        failures_allowed=submission.failures_allowed,
        pending_action=submission.pending_action,
    )
