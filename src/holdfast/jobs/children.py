"""Children: runs that another run submits, and can wait for without occupying a worker.

    parent ──submit_child──▶ child          stored: a later attempt of the parent gets the same child
    parent ──gather──▶ waits ──▶ ready      when all children have ended; the parent starts again, with its stored steps

A child is identified by its parent and its name, or by its number if it has no name.
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
    """Raised to end this attempt; the run continues when these runs have ended.

    It is not an Exception, so that `except Exception` in a job does not catch it.
    """

    def __init__(self, run_ids: Sequence[str]) -> None:
        super().__init__(f"waits for {len(run_ids)} runs")
        self.run_ids = tuple(run_ids)


def waited_for(error: BaseException) -> tuple[str, ...]:
    """Return the runs that an attempt waits for, or none if it raised any other error as well.

    A task group can raise several Waiting errors at once, in an exception group.
    """
    match error:
        case Waiting():
            return error.run_ids
        case BaseExceptionGroup():
            parts = [waited_for(one) for one in error.exceptions]
            return tuple(dict.fromkeys(run_id for part in parts for run_id in part)) if all(parts) else ()
    return ()


def named(job: Job[..., Any], numbers: Iterator[int]) -> tuple[str, Options]:
    """Return the name of a child, and its options without `idempotency_key`, which gave the name.

    A child without a name gets the next number.
    """
    if not isinstance(job, Job):
        raise InvalidPolicy(f"ctx.submit_child takes a job and its arguments, not {job!r}")
    options = job.options
    if options.connection is not None:
        raise InvalidPolicy("a child can't be submitted in a caller transaction; leave out connection=…")
    # Ignore `unique`: if it returned a run of another parent, a later attempt would find no child and submit another.
    options = replace(options, unique=None)
    name = options.idempotency_key
    if name is None:
        return str(next(numbers)), options
    if name.isdigit() or len(name) > MAX_NAME:
        raise InvalidPolicy(f"{name!r} can't name a child: a name must not be a number or exceed {MAX_NAME} characters")
    return name, replace(options, idempotency_key=None)


def submit(tx: Transaction, lease: Lease, submission: Submission, *, name: str, renumber: Renumber) -> str:
    """Return the id of the child of that name, existing or new; raise LeaseLost if the parent's lease is lost.

    `renumber` gives the submission a new id, and gives new ids to the stages of a pipeline.
    """
    if submission.build is not None:
        # Every attempt of the parent would request it again, so a build that always fails would be built forever.
        raise InvalidPolicy(
            f"build {submission.job} can't be a child; let a child depend on it: depends_on=[build.request(…)]"
        )
    # The lease stays locked until the commit, so no other transaction submits children of this run meanwhile.
    require_lease(tx, lease)
    existing = tx.one("find_child", parent_id=lease.run_id, name=name)
    if existing is not None:
        if existing["job"] != submission.job:
            raise InvalidPolicy(
                f"child {name} of run {lease.run_id} was {existing['job']} in an earlier attempt and is "
                f"{submission.job} now; if the order varies, name each child: job.using(idempotency_key=…)"
            )
        return str(existing["id"])
    kind = submission.kind or CHILD
    child = replace(submission, kind=kind, parent_id=lease.run_id, stage=CHILD, segment=name)
    return submit_one(tx, renumber(child, new_id=tx.new_id))


def gathered(
    children: Sequence[Child[Any]], found: Sequence[Result], *, return_exceptions: bool, kept: str | None
) -> list[Any]:
    """Return the results of the children, in order; raise Waiting if some have not ended, or RunFailed if one failed.

    `kept` is the key that this run keeps while it waits.
    """
    by_id = {result.run_id: result for result in found}
    if kept is not None and (stuck := [child for child in children if child.key == kept and child.id not in by_id]):
        raise InvalidPolicy(
            f"child {stuck[0].name} can't start before this run releases key {kept}, and with key_order='strict' this "
            "run keeps the key while it waits; use another key or key_order='due'"
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
            raise InvalidPolicy(f"gather takes the children that submit_child returned, not {child!r}")
