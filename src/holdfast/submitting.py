"""Submitting: from arguments to a run's id, alone or with whoever else submits now, or in a caller's transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast import joins, operations, runs
from holdfast.errors import HoldfastError, InvalidArguments, InvalidPolicy, QueueFull, StoreBusy, StoreUnavailable
from holdfast.gather import Gather
from holdfast.jobs import Job, refuse_import
from holdfast.options import Options
from holdfast.submissions import Submission
from holdfast.threads import Threads

if TYPE_CHECKING:
    from holdfast.engine import Holdfast

T = TypeVar("T")

PATIENCE = timedelta(milliseconds=200)
# A lock that this process holds may be that of the very thread that waits for it.
OWN_PATIENCE = timedelta(seconds=2)


class Submitter:
    """What one Holdfast submits. Everything here gives ids; the engine makes handles of them."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._gather: Gather[tuple[Submission, bool], str] = Gather(self._submit_batch)
        self._threads = Threads("holdfast-submit", limit=4)

    def submit(
        self,
        job: Job[..., Any],
        options: Options,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        by: str | None = None,
    ) -> str:
        submission = self._submission(job, options, args, kwargs)
        if by is not None:
            operations.check(by)
            submission = replace(submission, by=by)
        if options.connection is not None:
            return self._submit_joined(options.connection, [submission])[0]
        return self._retrying(lambda first: self._submit_gathered(submission, first))

    async def asubmit(
        self, job: Job[..., Any], options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> str:
        refuse_import(f"submits {job.name}")
        if not self._hf.started:
            await self._threads.run(self._start, options)
        submission = self._submission(job, options, args, kwargs)
        if options.connection is not None:
            return (await self._asubmit_joined(options.connection, [submission]))[0]
        return await self._asubmit_gathered(submission)

    def submit_many(self, job: Job[..., Any], options: Options, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """All of them in one transaction, or none."""
        submissions = self._submissions(job, options, many)
        if options.connection is not None:
            return self._submit_joined(options.connection, submissions)
        return self._retrying(lambda first: self._submit_whole(submissions, first=first))

    async def asubmit_many(self, job: Job[..., Any], options: Options, many: Iterable[Mapping[str, Any]]) -> list[str]:
        if options.connection is None:
            return await self._threads.run(self.submit_many, job, options, _listed(many))
        submissions = await self._threads.run(self._submissions, job, options, _listed(many))
        return await self._asubmit_joined(options.connection, submissions)

    def _submission(
        self, job: Job[..., Any], options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Submission:
        refuse_import(f"submits {job.name}")
        self._start(options)
        now = self._hf.clock.now()
        return job.submission(self._hf.ids.new(now), options, args, kwargs, now=now)

    def _start(self, options: Options) -> None:
        try:
            self._hf.start()
        except StoreBusy as error:
            if options.connection is None:
                raise
            raise StoreBusy(f"{error}. Call hf.start() once before you open a transaction to join") from error

    def _submissions(self, job: Job[..., Any], options: Options, many: Iterable[Mapping[str, Any]]) -> list[Submission]:
        if options.idempotency_key is not None:
            raise InvalidPolicy("an idempotency key names one run; submit_many makes several")
        return [self._submission(job, options, (), arguments) for arguments in _listed(many)]

    def _submit_batch(self, batch: Sequence[tuple[Submission, bool]]) -> Sequence[str | Exception]:
        submissions = [submission for submission, _ in batch]
        first = all(first for _, first in batch)
        patience = PATIENCE if self._hf.store.dialect.locks_rows else None
        store = self._hf.store
        with store.reserved():
            answers = store.do(
                lambda tx: runs.submit(tx, submissions, first=first), patience=patience, own_patience=OWN_PATIENCE
            )
        self._refused(answers)
        return answers

    def _submit_whole(self, submissions: list[Submission], *, first: bool = False) -> list[str]:
        """All of them in one transaction of ours, or none."""
        try:
            return self._hf.store.do(
                lambda tx: _all_or_nothing(runs.submit(tx, submissions, first=first, whole=True)),
                own_patience=OWN_PATIENCE,
            )
        except QueueFull as error:
            self._refused([error])
            raise

    def _refused(self, answers: Sequence[object], *, joined: bool = False) -> None:
        """Count refusals. In a caller's transaction they are written later: it may hold the only lock there is."""
        refused = [answer for answer in answers if isinstance(answer, QueueFull)]
        for full in refused:
            self._hf.counting.add("queue_rejected", full.queue)
        if refused and not joined:
            self._hf.counting.flush(self._hf.store)

    def _submit_gathered(self, submission: Submission, first: bool) -> str:
        """With whoever else submits now. One that meets a caller's open transaction waits for it alone."""
        try:
            return self._gather.do((submission, first))
        except StoreBusy:
            if not self._hf.store.dialect.locks_rows:
                raise
            return self._submit_whole([submission])[0]

    async def _asubmit_gathered(self, submission: Submission) -> str:
        """The same for async callers; the event loop goes on while a thread of ours commits."""
        try:
            return await self._gather.ado((submission, True))
        except (StoreBusy, StoreUnavailable) as error:
            if isinstance(error, StoreBusy) and not self._hf.store.dialect.locks_rows:
                raise
            return await self._threads.run(self._retrying, lambda first: self._submit_gathered(submission, False))

    def _submit_joined(self, connection: Any, submissions: list[Submission]) -> list[str]:
        try:
            return joins.within(
                self._hf.store, connection, lambda tx: _all_or_nothing(runs.submit(tx, submissions, whole=True))
            )
        except QueueFull as error:
            self._refused([error], joined=True)
            raise

    async def _asubmit_joined(self, connection: Any, submissions: list[Submission]) -> list[str]:
        try:
            return await joins.awithin(
                self._hf.store, connection, lambda tx: _all_or_nothing(runs.submit(tx, submissions, whole=True))
            )
        except QueueFull as error:
            self._refused([error], joined=True)
            raise

    def _retrying(self, submit: Callable[[bool], T]) -> T:
        """A connection that broke may have taken our commit's reply with it: the same ids again do no harm."""
        waited = threading.Event()
        for number, pause in enumerate((0.05, 0.2, 1.0, 2.0, None)):
            try:
                return submit(number == 0)
            except StoreUnavailable:
                if pause is None:
                    raise
                waited.wait(pause)
        raise AssertionError


def _listed(many: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The arguments of each run, read once, where the caller is."""
    if isinstance(many, Mapping) or not isinstance(many, Iterable):
        raise InvalidArguments(f"submit_many takes a list: a mapping of arguments for each run, not {many!r}")
    listed = list(many)
    for arguments in listed:
        if not isinstance(arguments, Mapping):
            raise InvalidArguments(f"submit_many takes a mapping of arguments for each run, not {arguments!r}")
    return listed


def _all_or_nothing(answers: Sequence[str | HoldfastError]) -> list[str]:
    ids: list[str] = []
    for answer in answers:
        if isinstance(answer, HoldfastError):
            raise answer
        ids.append(answer)
    return ids
