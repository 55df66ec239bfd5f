"""Runs: one row per submission of a job, from submitted to finished.

    submit ──▶ ready                      nothing to wait for
           ──▶ waits                      a time, other runs, or a key that is not free; every stage of a pipeline

A submission is inserted once and never updated (a build that it asked for in a caller's transaction is filled in, once,
when it is found); where the run stands now is a row in exactly one other table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.runs import audit, ready
from holdfast.runs.build_once import BuildMatch, BuildRun, get_or_create
from holdfast.runs.limits import capacity
from holdfast.runs.limits.admission import capacity_expected, capacity_request_of, judge_admission, settle_admission
from holdfast.runs.limits.keys import take_key_locks
from holdfast.runs.submission import Submission, arguments_of, asks, settled, stored
from holdfast.runs.waiting import Wait, add_waiting
from holdfast.store.dialects.base import Conflict
from holdfast.store.isolation import of
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, IdempotencyConflict, UnknownNeed
from holdfast.values.builds import Wish


def submit_runs(
    tx: Transaction, submissions: Sequence[Submission], *, first: bool = False, whole: bool = False
) -> list[str | HoldfastError]:
    """For each submission its run's id, or why it was refused; a refused one has written nothing.

    `first` says that these ids have never been sent before, so that no reply to them can have been lost; `whole` that
    none is wanted if one is refused.
    """
    plain = not any(s.after or s.wishes or s.build or s.idempotency_key or s.unique for s in submissions)
    queues = {s.queue for s in submissions}
    if first and plain and tx.owned and not capacity_expected(tx, queues):
        tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in submissions], counted=0)
        place_runs(tx, submissions, bounded={})
        audit.submitted(tx, submissions)
        return [s.run_id for s in submissions]
    answers: dict[int, str | HoldfastError] = {}
    unknown = _unknown_needs(tx, submissions)
    accepted = [s for s in submissions if not unknown & s.needs]
    asking = [s for s in accepted if s.build is None]
    admission = judge_admission(tx, asking, repeated=lambda: _repeated(tx, asking))
    if whole and (admission.refused or len(accepted) < len(submissions)):
        accepted = asking = []
    # What is there already by its idempotency key makes no run, so it must not stand for one.
    both = [s for s in asking if s.unique and s.idempotency_key]
    there = _repeated(tx, both) if both else set()
    settle_admission(tx, [s for s in asking if s.run_id not in there], admission)
    accepted = [s for s in accepted if admission.admits(s.run_id)]
    found, new = _settle(tx, accepted, first=first)
    builds = {s.run_id: found[s.build].run_id if s.build in found else s.run_id for s in accepted if s.build}
    accepted = [settled(s, found) for s in accepted if s.build is None]
    rows = [stored(s, tx.created_at) for s in sorted(accepted, key=lambda s: s.run_id)]
    counted = int(admission.counted)
    inserted = {row["id"] for row in tx.all("insert_runs", rows=rows, counted=counted)} if rows else set()
    if not new <= inserted:
        # Someone came before us and has just committed: what we refuse must leave no build. Again, and we see it.
        raise Conflict("a run that needs builds has just been submitted by someone else")
    family = [member for s in accepted if s.run_id in inserted for member in s.family]
    if family:
        tx.put("insert_runs", rows=[stored(s, tx.created_at) for s in family], counted=1)
    placed = [*family, *(s for s in accepted if s.run_id in inserted)]
    place_runs(tx, placed, bounded=None if family else admission.bounded)
    made = {found[s.build].run_id for s in submissions if s.build in found}
    audit.submitted(tx, [s for s in submissions if s.run_id in inserted | made])
    existing = _existing(tx, [s for s in accepted if s.run_id not in inserted])
    for index, submission in enumerate(submissions):
        if submission.run_id in inserted:
            answers[index] = submission.run_id
        elif full := admission.refused.get(admission.same.get(submission.run_id, submission.run_id)):
            answers[index] = full
        elif missing := unknown & submission.needs:
            answers[index] = UnknownNeed(f"there is no run {', '.join(sorted(missing))} to wait for{_unseen(tx)}")
        elif submission.run_id in builds:
            answers[index] = builds[submission.run_id]
        elif submission.run_id in existing:
            answers[index] = existing[submission.run_id]
        else:
            stands = admission.same.get(submission.run_id, submission.run_id)
            answers[index] = admission.given.get(stands, stands)
    return [answers[index] for index in range(len(submissions))]


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


def _settle(
    tx: Transaction, submissions: Sequence[Submission], *, first: bool
) -> tuple[dict[Wish, BuildMatch], set[str]]:
    """Get or create the builds of new submissions; and those for which that was done, which must prove to be new.

    In a caller's transaction an orchestrator does it later.
    """
    wishing = [s for s in submissions if s.wishes or s.build]
    if not wishing or not tx.owned:
        return {}, set()
    doubtful = [s for s in wishing if s.idempotency_key is not None or not first]
    repeated = _repeated(tx, doubtful) | _later(submissions) if doubtful else set()
    new = [s for s in wishing if s.run_id not in repeated]
    offered = {s.build: s.run_id for s in new if s.build}
    # A build that several ask for belongs to the trace of the first.
    traces = {wish: s.trace for s in reversed(new) for wish in (*s.wishes, *((s.build,) if s.build else ()))}
    wishes = [*(wish for s in new for wish in s.wishes), *offered]
    found = get_or_create(
        tx, wishes, make=lambda tx, makings: submit_builds(tx, makings, traces=traces), offered=offered
    )
    return found, {s.run_id for s in new if not s.build}


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


def _unknown_needs(tx: Transaction, submissions: Sequence[Submission]) -> set[str]:
    needed = {needed for submission in submissions for needed in submission.needs}
    if not needed:
        return set()
    return needed - {row["id"] for row in tx.all("share_runs", ids=sorted(needed))}


def _unseen(tx: Transaction) -> str:
    """Why a caller's transaction may not see a run that is there."""
    isolation = of(tx)
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
