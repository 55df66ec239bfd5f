"""Submit: validate, admit, resolve builds, insert, route to waiting or ready, answer.

    submit ──▶ ready                      nothing to wait for
           ──▶ waits                      a time, other runs, or a key that is not free; every stage of a pipeline

A submission is inserted once and never updated (a build that it asked for in a caller's transaction is filled in, once,
when it is found); where the run stands now is a row in exactly one other table.
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
    judge_admission,
    settle_admission,
)
from holdfast.runs.limits.keys import take_key_locks
from holdfast.runs.submission import Pending, Submission, arguments_of, asks, settled, stored
from holdfast.runs.waiting import Wait, add_waiting
from holdfast.store.caller_transaction import isolation_of
from holdfast.store.dialects.base import Conflict
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, IdempotencyConflict, QueueFull, UnknownNeed
from holdfast.values.builds import Wish

T = TypeVar("T")

Answers: TypeAlias = dict[str, str | HoldfastError]
"""For each submission, by its id: its run, or why it was refused."""


PATIENCE = timedelta(milliseconds=200)
# A lock that this process holds may belong to the very thread that waits for it.
OWN_PATIENCE = timedelta(seconds=2)


def submit_together(store: Store, pending: Sequence[Pending]) -> list[str | HoldfastError]:
    """In one transaction of ours: for each its run's id, or why it was refused."""
    patience = PATIENCE if store.dialect.locks_rows else None
    with store.reserved():
        answers = _write(store, pending, lambda tx: submit_pending(tx, pending), patience=patience)
    count_refusals(store, answers, write=True)
    return answers


def submit_whole(store: Store, pending: Sequence[Pending]) -> list[str]:
    """All of them in one transaction of ours, or none."""
    try:
        return _write(store, pending, lambda tx: submit_all(tx, pending))
    except QueueFull as error:
        count_refusals(store, [error], write=True)
        raise


def submit_all(tx: Transaction, pending: Sequence[Pending]) -> list[str]:
    """The ids of all of them, or the error of the first that was refused."""
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
    """Count those that a full queue refused; a later write takes them along unless `write` asks for one soon."""
    refused = [answer for answer in answers if isinstance(answer, QueueFull)]
    for full in refused:
        store.counters.add("queue_rejected", full.queue)
    if refused and write:
        store.counters.flush()


def _write(
    store: Store, pending: Sequence[Pending], verb: Callable[[Transaction], T], *, patience: timedelta | None = None
) -> T:
    """Run the verb, and note whether it may have been committed: then the same ids are sent again."""
    committing = False

    def noted(tx: Transaction) -> T:
        nonlocal committing
        committing = False
        answer = verb(tx)
        committing = True
        return answer

    try:
        return store.do(noted, patience=patience, own_patience=OWN_PATIENCE)
    finally:
        for one in pending:
            one.sent = one.sent or committing


def submit_runs(
    tx: Transaction, submissions: Sequence[Submission], *, first: bool = False, whole: bool = False
) -> list[str | HoldfastError]:
    """For each submission its run's id, or why it was refused; a refused one has written nothing.

    `first` says that these ids have never been sent before, so that no reply to them can have been lost; `whole` that
    none is wanted if one is refused.
    """
    if first and _is_plain(tx, submissions):
        return _submit_plain(tx, submissions)
    answers: Answers = {}
    known = _validate(tx, submissions, answers)
    admission, admitted = _admit(tx, known, answers, refuse_all=whole and len(known) < len(submissions), whole=whole)
    builds, runs, new = _resolve_builds(tx, admitted, answers, first=first)
    inserted = _insert(tx, runs, answers, counted=admission.counted)
    if not new <= {run.run_id for run in inserted}:
        # Someone came before us and has just committed: what we refuse must leave no build. Again, and we see it.
        raise Conflict("a run that needs builds has just been submitted by someone else")
    family = [member for run in inserted for member in run.family]
    if family:
        tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in family], counted=1)
    place_runs(tx, [*family, *inserted], bounded=None if family else admission.bounded)
    written = {run.run_id for run in inserted} | {build.run_id for build in builds.values()}
    audit.submitted(tx, [s for s in submissions if s.run_id in written])
    return [answers.get(s.run_id, s.run_id) for s in submissions]


def _is_plain(tx: Transaction, submissions: Sequence[Submission]) -> bool:
    """Whether nothing can refuse or replace any of them, so that they are inserted without a look."""
    if any(s.after or s.wishes or s.build or s.idempotency_key or s.unique for s in submissions):
        return False
    return tx.owned and not capacity_expected(tx, {s.queue for s in submissions})


def _submit_plain(tx: Transaction, submissions: Sequence[Submission]) -> list[str | HoldfastError]:
    tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in submissions], counted=0)
    place_runs(tx, submissions, bounded={})
    audit.submitted(tx, submissions)
    return [s.run_id for s in submissions]


def _validate(tx: Transaction, submissions: Sequence[Submission], answers: Answers) -> list[Submission]:
    """Those whose dependencies all exist."""
    needed = {needed for submission in submissions for needed in submission.needs}
    unknown = needed - {row["id"] for row in tx.all("share_runs", ids=sorted(needed))} if needed else set()
    for submission in submissions:
        if missing := unknown & submission.needs:
            answers[submission.run_id] = UnknownNeed(
                f"there is no run {', '.join(sorted(missing))} to wait for{_unseen(tx)}"
            )
    return [s for s in submissions if s.run_id not in answers]


def _admit(
    tx: Transaction, submissions: Sequence[Submission], answers: Answers, *, whole: bool, refuse_all: bool
) -> tuple[Admission, list[Submission]]:
    """Those that a bounded queue has room for and that no other run stands for. Builds are always admitted."""
    asking = [s for s in submissions if s.build is None]
    admission = judge_admission(tx, asking, repeated=lambda: _repeated(tx, asking))
    if refuse_all or (whole and admission.refused):
        submissions, left = [], []
    else:
        # A run that is there already by its idempotency key makes no new run, so it must not stand for one.
        both = [s for s in asking if s.unique and s.idempotency_key]
        there = _repeated(tx, both) if both else set()
        left = [s for s in asking if s.run_id not in there]
    settle_admission(tx, left, admission)
    for submission in asking:
        stands = admission.same.get(submission.run_id, submission.run_id)
        if (refused := admission.refused.get(stands)) is not None:
            answers[submission.run_id] = refused
        elif not admission.admits(submission.run_id):
            answers[submission.run_id] = admission.given.get(stands, stands)
    return admission, [s for s in submissions if admission.admits(s.run_id)]


def _resolve_builds(
    tx: Transaction, submissions: Sequence[Submission], answers: Answers, *, first: bool
) -> tuple[dict[Wish, BuildMatch], list[Submission], set[str]]:
    """Get or create the builds that these ask for: the builds, the submissions that wait for their runs instead, and
    those for which a build was got, which must prove to be new.

    In a caller's transaction an orchestrator does it later.
    """
    found: dict[Wish, BuildMatch] = {}
    new: list[Submission] = []
    wishing = [s for s in submissions if s.wishes or s.build]
    if wishing and tx.owned:
        doubtful = [s for s in wishing if s.idempotency_key is not None or not first]
        repeated = _repeated(tx, doubtful) | _later(submissions) if doubtful else set()
        new = [s for s in wishing if s.run_id not in repeated]
        offered = {s.build: s.run_id for s in new if s.build}
        # A build that several ask for belongs to the trace of the first.
        traces = {wish: s.trace for s in reversed(new) for wish in (*s.wishes, *((s.build,) if s.build else ()))}
        wishes = [*(wish for s in new for wish in s.wishes), *offered]
        found = get_or_create(tx, wishes, make=partial(submit_builds, traces=traces), offered=offered)
    answers |= {s.run_id: found[s.build].run_id for s in submissions if s.build in found}
    runs = [settled(s, found) for s in submissions if s.build is None]
    return found, runs, {s.run_id for s in new if not s.build}


def _insert(tx: Transaction, submissions: Sequence[Submission], answers: Answers, *, counted: bool) -> list[Submission]:
    """Insert those that are not there yet, by id or idempotency key."""
    rows = [stored(s, tx.created_at) for s in sorted(submissions, key=lambda s: s.run_id)]
    new = {row["id"] for row in tx.all("insert_runs", rows=rows, counted=int(counted))} if rows else set()
    answers |= _existing(tx, [s for s in submissions if s.run_id not in new])
    return [s for s in submissions if s.run_id in new]


def place_runs(tx: Transaction, submissions: Sequence[Submission], *, bounded: Mapping[str, int] | None = None) -> None:
    """Put new runs where they belong: in `ready` if nothing stands in their way, else in `waits`.

    `bounded` are the bounds of their queues, where they are known; in a bounded queue each takes a seat.
    """
    seated = [capacity_request_of(s) for s in submissions if s.kind != "build"]
    if seated and bounded is None:
        bounded = capacity.bounds(tx, [replace(seat, refusable=False) for seat in seated])
    capacity.take(tx, bounded or {}, seated)
    needy = [s for s in submissions if s.after]
    if needy:
        needs = sorted((needed, s.run_id, int(must)) for s in needy for needed, must in s.after.items())
        tx.put(
            "insert_needs",
            rows=[dict(zip(("needed", "run_id", "must_succeed"), need, strict=True)) for need in needs],
        )
    if asked := [ask for s in submissions for ask in asks(s)]:
        tx.put("insert_asks", rows=sorted(asked, key=lambda ask: (ask["run_id"], ask["number"])))
    free = [s for s in submissions if _is_free(s, tx.now)]
    # Joined to a caller's transaction we take no key: its open transaction would block every other submitter of it.
    wanted: dict[str, str] = {}
    for submission in free if tx.owned else ():
        # Several holds are numbered, and only an orchestrator deals them out.
        if submission.key is not None and submission.policy.key_limit == 1:
            wanted.setdefault(submission.key, submission.run_id)
    may_start = {s.run_id for s in free if s.key is None} | take_key_locks(tx, wanted)
    ready.put(tx, [s.ticket for s in submissions if s.run_id in may_start])
    add_waiting(tx, [_wait(s, tx.now) for s in submissions if s.run_id not in may_start])


def submit_builds(
    tx: Transaction, makings: Sequence[BuildRun], *, traces: Mapping[Wish, str | None] | None = None
) -> None:
    """Submit the runs that make builds. They take no seat: a bounded queue never stands in the way of what it needs."""
    submissions = [
        Submission(
            run_id=making.run_id,
            job=making.wish.job,
            queue=making.wish.queue,
            priority=making.wish.priority,
            key=making.wish.key,
            args=making.wish.args,
            policy=making.wish.policy,
            tags=making.wish.tags,
            again_of=making.again_of,
            kind="build",
            trace=(traces or {}).get(making.wish),
        )
        for making in makings
    ]
    tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in submissions], counted=1)
    place_runs(tx, submissions)


def submit_segments(tx: Transaction, submissions: Sequence[Submission]) -> list[str]:
    """Submit segments of one stage, each the only one at its place; the ids of all of them, be they new or not."""
    inserted = {
        row["id"] for row in tx.all("insert_runs", rows=[stored(s, tx.created_at) for s in submissions], counted=1)
    }
    place_runs(tx, [s for s in submissions if s.run_id in inserted])
    there = [s for s in submissions if s.run_id not in inserted]
    if there:
        names = [s.segment for s in there]
        rows = tx.all("find_segments", parent_id=there[0].parent_id, stage=there[0].stage, names=names)
        inserted |= {row["id"] for row in rows}
    return sorted(inserted)


def _repeated(tx: Transaction, submissions: Sequence[Submission]) -> set[str]:
    """Those that are there already, by id or idempotency key: nothing is built for them."""
    known = {row["id"] for row in tx.all("find_runs", ids=[s.run_id for s in submissions])}
    keys = [{"job": s.job, "idempotency_key": s.idempotency_key} for s in submissions if s.idempotency_key]
    used = {(row["job"], row["idempotency_key"]) for row in tx.all("find_idempotent", rows=keys)} if keys else set()
    return known | {s.run_id for s in submissions if (s.job, s.idempotency_key) in used}


def _later(submissions: Sequence[Submission]) -> set[str]:
    """Those that have an idempotency key of another one of them, which goes first because its id does."""
    first: dict[tuple[str, str], str] = {}
    keyed = sorted((s.run_id, (s.job, s.idempotency_key)) for s in submissions if s.idempotency_key)
    return {run_id for run_id, key in keyed if first.setdefault(key, run_id) != run_id}


def _unseen(tx: Transaction) -> str:
    """Why a caller's transaction may not see a run that is there."""
    isolation = isolation_of(tx)
    return "" if isolation is None else f"; your transaction is {isolation} and sees no run submitted since it began"


def _existing(tx: Transaction, submissions: Sequence[Submission]) -> dict[str, str | HoldfastError]:
    """For submissions that were not inserted: the run that was there before, or a conflict.

    A run with the very same id is our own: the commit went through and its reply was lost.
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
                + (f"run {earlier['id']} with other arguments" if earlier else "a run that is being removed; try again")
            )
    return found


def _same_arguments(args: str, submission: Submission) -> bool:
    """Whether a run was submitted with these arguments; a pipeline's are kept beside the ids of its stages' runs."""
    if not submission.family:
        return args == submission.args
    return arguments_of(args) == arguments_of(submission.args)


def _is_free(submission: Submission, now: datetime) -> bool:
    """Whether it may start once it has its key. Only an orchestrator makes a stage ready, the first one too."""
    waits_for_others = submission.after or submission.wishes or submission.errand or submission.kind == "stage"
    return not waits_for_others and (submission.due_at is None or submission.due_at <= now)


def _wait(submission: Submission, now: datetime) -> Wait:
    due_at = submission.due_at if submission.due_at is not None and submission.due_at > now else None
    missing = len(submission.after) + len(submission.wishes)
    if missing:
        because = f"needs {missing} other run{'s' if missing > 1 else ''}"
    elif due_at is not None:
        because = "delayed"
    elif submission.kind == "stage":
        because = "new: an orchestrator makes it ready"
    else:
        because = f"its turn for key {submission.key}"
    return Wait(
        ticket=submission.ticket,
        missing=missing,
        due_at=due_at,
        because=because,
        spare=submission.spare,
        errand=submission.errand,
    )
