"""Execute: one run, from its arguments to an outcome. Every road returns an Outcome; only the worker's loop writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from holdfast.jobs import children
from holdfast.jobs.job import Job
from holdfast.runs.claim import Claim
from holdfast.runs.outcomes import Cancelled, Failed, Outcome, RetryLater, Succeeded, WaitForChildren
from holdfast.support import django_bridge, errors, json_text, threads
from holdfast.support.ids import Ids
from holdfast.support.redaction import Redactor
from holdfast.values.retries import GiveUp, TryAgain
from holdfast.worker.context import ResultNotStorable, RunContext
from holdfast.worker.run_log import current


def execute(job: Job[..., Any], claim: Claim, context: RunContext, judge: Judge) -> Outcome:
    """Call a plain function."""
    django_bridge.close_old_connections()
    token = current.set(context)
    try:
        _check(claim)
        value = job.fn(**_arguments(job, _filled(job, claim, context), context))
        return judge.finished(job, claim) if context.finishing else judge.success(job, value)
    except BaseException as error:
        return judge.failure(job, claim, error)
    finally:
        current.reset(token)
        django_bridge.close_old_connections()
        with suppress(errors.HoldfastError):  # the lease is lost, or what was told can't be stored
            context.settle()


async def aexecute(job: Job[..., Any], claim: Claim, context: RunContext, judge: Judge) -> Outcome:
    """Await an async function."""
    django_bridge.close_old_connections_of_async_code()
    token = current.set(context)
    try:
        _check(claim)
        work: Callable[..., Awaitable[Any]] = job.fn
        if claim.needed:
            # Asked for now, off the event loop: what the function reads later must not make others wait.
            await threads.calls.run(getattr, context, "needed")
        args = await threads.calls.run(_filled, job, claim, context) if job.fills else claim.args
        value = await work(**_arguments(job, args, context))
        return judge.finished(job, claim) if context.finishing else judge.success(job, value)
    except BaseException as error:
        return judge.failure(job, claim, error)
    finally:
        current.reset(token)
        django_bridge.close_old_connections_of_async_code()
        with suppress(errors.HoldfastError):  # the lease is lost, or what was told can't be stored
            context.settle()


class ArgumentsChanged(Exception):
    """The stored arguments no longer fit the function."""


class StoredUnreadable(Exception):
    """A stored value of the run can't be decoded."""


def _check(claim: Claim) -> None:
    if claim.unreadable is not None:
        raise StoredUnreadable(claim.unreadable)


def _filled(job: Job[..., Any], claim: Claim, context: RunContext) -> str:
    try:
        return job.filled(claim.args, context.inputs) if job.fills else claim.args
    except errors.Unreadable as error:
        raise StoredUnreadable(str(error)) from error


def _arguments(job: Job[..., Any], args: str, context: RunContext) -> dict[str, Any]:
    try:
        arguments = job.decode_arguments(args)
    except Exception as error:
        try:
            json_text.load(args)
        except errors.Unreadable as unreadable:
            raise StoredUnreadable(f"args: {unreadable}") from error
        raise ArgumentsChanged(str(error)) from error
    if job.arguments.context_name is not None:
        arguments[job.arguments.context_name] = context
    return arguments


class Judge:
    """What a result or an error means for a run."""

    def __init__(self, redactor: Redactor, ids: Ids, *, max_result_bytes: int) -> None:
        self._redactor, self._ids, self._max_result_bytes = redactor, ids, max_result_bytes

    def success(self, job: Job[..., Any], value: Any) -> Outcome:
        try:
            return Succeeded(job.encode_result(value, max_bytes=self._max_result_bytes)[0])
        except errors.HoldfastError as error:
            return Failed("RESULT_NOT_STORABLE", self._redactor.text(str(error)))

    def finished(self, job: Job[..., Any], claim: Claim) -> Outcome:
        """What a run comes to that has written its own end, where that is not to be seen."""
        return self.failure(job, claim, errors.NotCommitted("the transaction of ctx.finish was not committed"))

    def failure(self, job: Job[..., Any], claim: Claim, error: BaseException) -> Outcome:
        if run_ids := children.waited_for(error):
            return WaitForChildren(run_ids, key_order=claim.policy.key_order)
        match error:
            case ArgumentsChanged():
                return Failed("ARGUMENTS_CHANGED", self._redactor.text(str(error)))
            case StoredUnreadable():
                return Failed("RUN_UNREADABLE", self._redactor.text(str(error)))
            case ResultNotStorable():
                return Failed("RESULT_NOT_STORABLE", self._redactor.text(str(error)))
            case errors.Cancelled():
                return Cancelled(self._redactor.text(str(error)) or "the job stopped itself")
            case GiveUp():
                return Failed(error.failure_type, self._text(error))
        text = self._text(error)
        if isinstance(error, TryAgain) and not error.counts and claim.policy.on_shutdown != "fail":
            return replace(self.later(claim, text, after=error.after), counts=False)
        may_retry = claim.lease.ticket.tries < claim.policy.max_attempts
        if may_retry and (isinstance(error, TryAgain) or job.options.policy.retry.applies_to(error)):
            return self.later(claim, text, after=error.after if isinstance(error, TryAgain) else None)
        return Failed("ERROR", text)

    def _text(self, error: BaseException) -> str:
        """Its traceback; of one that the job raised to say something, only what it says, unless another caused it."""
        caused = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if isinstance(error, GiveUp | TryAgain) and caused is None:
            return self._redactor.text(str(error))
        return self._redactor.error(error)

    def died(self, claim: Claim, text: str) -> Outcome:
        """Its process is gone without an answer: a failed attempt like any other."""
        text = self._redactor.text(text)
        if claim.lease.ticket.tries < claim.policy.max_attempts:
            return self.later(claim, text)
        return Failed("PROCESS_TERMINATED", text)

    def later(self, claim: Claim, error: str, *, after: timedelta | None = None) -> RetryLater:
        """Another try, after the pause that the policy says."""
        if after is None:
            after = claim.policy.retry.wait_before(claim.lease.ticket.tries + 1, fraction=self._ids.fraction())
        return RetryLater(error, after, key_order=claim.policy.key_order)
