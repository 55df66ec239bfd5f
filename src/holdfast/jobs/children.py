"""Children: runs that a run submits, and may wait for without holding a worker.

    parent ──submit_child──▶ child          remembered: a later attempt of the parent gets the same one
    parent ──gather──▶ waits ──▶ ready      when all of them have ended; it begins anew, after its remembered steps

A child is known by its parent and its name, or by its number where it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from holdfast.jobs.job import Job
from holdfast.jobs.options import Options
from holdfast.runs.lease import Lease, require_lease
from holdfast.runs.submission import CHILD, Submission
from holdfast.runs.submit import submit_one
from holdfast.store.transaction import Transaction
from holdfast.support.errors import InvalidPolicy, RunFailed
from holdfast.support.validation import MAX_NAME
from holdfast.values.runs import Result

R = TypeVar("R")


class Renumber(Protocol):
    def __call__(self, submission: Submission, /, *, new_id: Callable[[], str]) -> Submission: ...


@dataclass(frozen=True)
class Child(Generic[R]):
    """A run that this run has submitted."""

    id: str
    name: str
    job: Job[..., R] = field(repr=False, compare=False)
    key: str | None = field(default=None, repr=False, compare=False)


class Waiting(BaseException):
    """This attempt ends here; the run goes on when these runs have ended.

    Not an Exception: code that goes on after any error must not go on after this.
    """

    def __init__(self, run_ids: Sequence[str]) -> None:
        super().__init__(f"waits for {len(run_ids)} runs")
        self.run_ids = tuple(run_ids)


def waited_for(error: BaseException) -> tuple[str, ...]:
    """The runs for which an attempt ended here, if that is all that it ended for; a task group may have several."""
    match error:
        case Waiting():
            return error.run_ids
        case BaseExceptionGroup():
            parts = [waited_for(one) for one in error.exceptions]
            return tuple(dict.fromkeys(run_id for part in parts for run_id in part)) if all(parts) else ()
    return ()


def named(job: Job[..., Any], numbers: Iterator[int]) -> tuple[str, Options]:
    """What a child is called, and its options without what names it. Only one without a name takes a number."""
    if not isinstance(job, Job):
        raise InvalidPolicy(f"write ctx.submit_child(job, …): a job and its arguments, not {job!r}")
    options = job.options
    if options.connection is not None:
        raise InvalidPolicy("a child is submitted in a transaction of its own; it can't join another")
    # Not unique: given another's run, a later attempt would find no child of its own and submit one more.
    options = replace(options, unique=None)
    name = options.idempotency_key
    if name is None:
        return str(next(numbers)), options
    if name.isdigit() or len(name) > MAX_NAME:
        raise InvalidPolicy(f"{name!r} can't name a child: children without a name have numbers")
    return name, replace(options, idempotency_key=None)


def submit(tx: Transaction, lease: Lease, submission: Submission, *, name: str, renumber: Renumber) -> str:
    """The id of the child of that name: the one that there is, else a new one; LeaseLost if the parent is not ours.

    `renumber` gives a submission a new id, and the stages of a pipeline with it.
    """
    if submission.build is not None:
        # Asked for by each attempt of the parent, one that always fails would be made for ever.
        raise InvalidPolicy(f"build {submission.job} is no one's child; let a child wait for it: after=[…of(…)]")
    # The lease stays locked until this is committed, so no one else submits children of this run meanwhile.
    require_lease(tx, lease)
    found = tx.one("find_child", parent_id=lease.run_id, name=name)
    if found is not None:
        if found["job"] != submission.job:
            raise InvalidPolicy(
                f"child {name} of run {lease.run_id} was {found['job']} before and is {submission.job} now; "
                "name children that do not always come in the same order: job.using(idempotency_key=…)"
            )
        return str(found["id"])
    kind = submission.kind or CHILD
    child = replace(submission, kind=kind, parent_id=lease.run_id, stage=CHILD, segment=name)
    return submit_one(tx, renumber(child, new_id=tx.new_id))


def gathered(
    children: Sequence[Child[Any]], found: Sequence[Result], *, return_exceptions: bool, kept: str | None
) -> list[Any]:
    """What the children came to, in order; Waiting if some have not ended, RunFailed for the first that failed.

    `kept` is the key that no one else can have while we wait.
    """
    by_id = {result.run_id: result for result in found}
    if kept is not None and (stuck := [child for child in children if child.key == kept and child.id not in by_id]):
        raise InvalidPolicy(
            f"child {stuck[0].name} can't start before this run lets key {kept} go, and with key_order='strict' it "
            "keeps the key while it waits"
        )
    if len(by_id) < len({child.id for child in children}):
        raise Waiting(list(dict.fromkeys(child.id for child in children)))
    answers = [_answer(child, by_id[child.id]) for child in children]
    if not return_exceptions:
        for answer in answers:
            if isinstance(answer, RunFailed):
                raise answer
    return answers


def _answer(child: Child[Any], ended: Result) -> Any:
    if ended.state != "succeeded" or ended.result is None:
        return RunFailed(child.id, ended.state, ended.failure_type, ended.error)
    return child.job.arguments.decode_result(ended.result)


def checked(children: Sequence[Any]) -> None:
    for child in children:
        if not isinstance(child, Child):
            raise InvalidPolicy(f"gather takes what submit_child gave, not {child!r}")
