"""Execute: call the function of one run and return its outcome, which the worker's loop stores."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from holdfast.jobs import children
from holdfast.jobs.job import Job
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.outcomes import Cancelled, Failed, Outcome, RetryLater, Succeeded, WaitForChildren
from holdfast.support import django_bridge, errors, json_text, threads
from holdfast.support.ids import Ids
from holdfast.support.redaction import Redactor
from holdfast.values.retries import GiveUp, Snooze, TryAgain
from holdfast.worker.context import ResultNotStorable, RunContext
from holdfast.worker.run_log import current


def execute(job: Job[..., Any], claimed: ClaimedRun, context: RunContext, decider: OutcomeDecider) -> Outcome:
    """Call a plain function."""
    django_bridge.close_old_connections()
    token = current.set(context)
    try:
        _check(claimed)
        value = job.fn(**_arguments(job, _filled(job, claimed, context), context))
        return decider.finished(job, claimed) if context.finishing else decider.success(job, value)
    except BaseException as error:
        return decider.failure(job, claimed, error)
    finally:
        current.reset(token)
        django_bridge.close_old_connections()
        with suppress(errors.HoldfastError):  # the lease is lost, or the progress can't be stored
            context.flush_progress()


async def aexecute(job: Job[..., Any], claimed: ClaimedRun, context: RunContext, decider: OutcomeDecider) -> Outcome:
    """Await an async function."""
    django_bridge.close_old_connections_of_async_code()
    token = current.set(context)
    try:
        _check(claimed)
        work: Callable[..., Awaitable[Any]] = job.fn
        if claimed.depends_on:
            # Read now, in a thread, so that the function's later access does not block the event loop.
            await threads.calls.run(getattr, context, "dependencies")
        args = await threads.calls.run(_filled, job, claimed, context) if job.fills else claimed.args
        value = await work(**_arguments(job, args, context))
        return decider.finished(job, claimed) if context.finishing else decider.success(job, value)
    except BaseException as error:
        return decider.failure(job, claimed, error)
    finally:
        current.reset(token)
        django_bridge.close_old_connections_of_async_code()
        with suppress(errors.HoldfastError):  # the lease is lost, or the progress can't be stored
            context.flush_progress()


class ArgumentsChanged(Exception):
    """Raised if the stored arguments no longer fit the function."""


class StoredUnreadable(Exception):
    """Raised if a stored value of the run can't be decoded."""


def _check(claimed: ClaimedRun) -> None:
    if claimed.unreadable is not None:
        raise StoredUnreadable(claimed.unreadable)


def _filled(job: Job[..., Any], claimed: ClaimedRun, context: RunContext) -> str:
    try:
        return job.filled(claimed.args, context.inputs) if job.fills else claimed.args
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


class OutcomeDecider:
    """Decides the outcome of a run from the result or error of its function."""

    def __init__(self, redactor: Redactor, ids: Ids, *, max_result_bytes: int) -> None:
        self._redactor, self._ids, self._max_result_bytes = redactor, ids, max_result_bytes

    def success(self, job: Job[..., Any], value: Any) -> Outcome:
        try:
            return Succeeded(job.encode_result(value, max_bytes=self._max_result_bytes)[0])
        except errors.HoldfastError as error:
            return Failed("RESULT_NOT_STORABLE", self._redactor.text(str(error)))

    def finished(self, job: Job[..., Any], claimed: ClaimedRun) -> Outcome:
        """Return the outcome of a run that called ctx.finish. It applies only if the transaction was not committed."""
        return self.failure(job, claimed, errors.NotCommitted("the transaction passed to ctx.finish was not committed"))

    def failure(self, job: Job[..., Any], claimed: ClaimedRun, error: BaseException) -> Outcome:
        if run_ids := children.waited_for(error):
            return WaitForChildren(run_ids, key_order=claimed.policy.key_order)
        match error:
            case ArgumentsChanged():
                return Failed("ARGUMENTS_CHANGED", self._redactor.text(str(error)))
            case StoredUnreadable():
                return Failed("RUN_UNREADABLE", self._redactor.text(str(error)))
            case ResultNotStorable():
                return Failed("RESULT_NOT_STORABLE", self._redactor.text(str(error)))
            case errors.Cancelled():
                return Cancelled(self._redactor.text(str(error)) or "the job cancelled itself")
            case GiveUp():
                return Failed(error.failure_type, self._text(error))
        text = self._text(error)
        if isinstance(error, Snooze) and claimed.policy.on_shutdown != "fail":
            return replace(self.later(claimed, text, after=error.after), counts=False)
        may_retry = claimed.lease.entry.attempt < claimed.policy.max_attempts
        if may_retry and (isinstance(error, Snooze | TryAgain) or job.options.policy.retry.applies_to(error)):
            return self.later(claimed, text, after=error.after if isinstance(error, Snooze | TryAgain) else None)
        return Failed("ERROR", text)

    def _text(self, error: BaseException) -> str:
        """Return the traceback; for GiveUp, Snooze and TryAgain without a cause only the message."""
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if isinstance(error, GiveUp | Snooze | TryAgain) and cause is None:
            return self._redactor.text(str(error))
        return self._redactor.error(error)

    def died(self, claimed: ClaimedRun, text: str) -> Outcome:
        """Return the outcome of a run whose process died without a result: a failed attempt."""
        text = self._redactor.text(text)
        if claimed.lease.entry.attempt < claimed.policy.max_attempts:
            return self.later(claimed, text)
        return Failed("PROCESS_TERMINATED", text)

    def later(self, claimed: ClaimedRun, error: str, *, after: timedelta | None = None) -> RetryLater:
        """Return a retry after `after`, or after the delay that the policy sets."""
        if after is None:
            after = claimed.policy.retry.wait_before(claimed.lease.entry.attempt + 1, fraction=self._ids.fraction())
        return RetryLater(error, after, key_order=claimed.policy.key_order)
