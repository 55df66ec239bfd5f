"""Submitting: from arguments to a run's id, alone or with whoever else submits now, or in a caller's transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.jobs.importing import refuse_import
from holdfast.jobs.job import Job
from holdfast.jobs.options import Options
from holdfast.runs import audit
from holdfast.runs.submission import Draft, Submission
from holdfast.runs.submit import submit_runs
from holdfast.store import caller_transaction
from holdfast.store.group_commit import GroupCommit
from holdfast.store.transaction import Transaction
from holdfast.support.errors import (
    HoldfastError,
    InvalidArguments,
    InvalidPolicy,
    QueueFull,
    StoreBusy,
    StoreUnavailable,
)
from holdfast.support.threads import Threads

if TYPE_CHECKING:
    from holdfast.engine import Holdfast

T = TypeVar("T")

PATIENCE = timedelta(milliseconds=200)
# A lock that this process holds may be that of the very thread that waits for it.
OWN_PATIENCE = timedelta(seconds=2)


class Ask:
    """One submission on its way to the database.

    The first transaction that tries to write it makes its id and its time, so that runs are in the order in which they
    are written. If no one knows whether that transaction was committed, the next one keeps both: one id is one run.
    """

    def __init__(self, draft: Draft, *, by: str | None = None) -> None:
        self._draft, self._by = draft, by
        self._made: Submission | None = None
        self.sent = False
        """Whether it may have been written."""

    def within(self, tx: Transaction) -> Submission:
        """The submission, for this transaction to write."""
        if self._made is None or not self.sent:
            made = self._draft(tx.new_id, tx.created_at)
            self._made = made if self._by is None else replace(made, by=self._by)
        return self._made


class Submitter:
    """What one Holdfast submits. Everything here gives ids; the engine makes handles of them."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._gather: GroupCommit[Ask, str] = GroupCommit(self._submit_batch)
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
        ask = self._ask(job, options, args, kwargs, by=by)
        if options.connection is not None:
            return self._submit_joined(options.connection, [ask])[0]
        return self._retrying(lambda: self._submit_gathered(ask))

    async def asubmit(
        self, job: Job[..., Any], options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> str:
        refuse_import(f"submits {job.name}")
        if not self._hf.started:
            await self._threads.run(self._start, options)
        ask = self._ask(job, options, args, kwargs)
        if options.connection is not None:
            return (await self._asubmit_joined(options.connection, [ask]))[0]
        return await self._asubmit_gathered(ask)

    def submit_many(self, job: Job[..., Any], options: Options, many: Iterable[Mapping[str, Any]]) -> list[str]:
        """All of them in one transaction, or none."""
        asks = self._asks(job, options, many)
        if options.connection is not None:
            return self._submit_joined(options.connection, asks)
        return self._retrying(lambda: self._submit_whole(asks))

    async def asubmit_many(self, job: Job[..., Any], options: Options, many: Iterable[Mapping[str, Any]]) -> list[str]:
        if options.connection is None:
            return await self._threads.run(self.submit_many, job, options, _listed(many))
        asks = await self._threads.run(self._asks, job, options, _listed(many))
        return await self._asubmit_joined(options.connection, asks)

    def _ask(
        self,
        job: Job[..., Any],
        options: Options,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        by: str | None = None,
    ) -> Ask:
        refuse_import(f"submits {job.name}")
        audit.check(by)
        self._start(options)
        return Ask(job.draft(options, args, kwargs, now=self._hf.clock.now()), by=by)

    def _start(self, options: Options) -> None:
        try:
            self._hf.start()
        except StoreBusy as error:
            if options.connection is None:
                raise
            raise StoreBusy(f"{error}. Call hf.start() once before you open a transaction to join") from error

    def _asks(self, job: Job[..., Any], options: Options, many: Iterable[Mapping[str, Any]]) -> list[Ask]:
        if options.idempotency_key is not None:
            raise InvalidPolicy("an idempotency key names one run; submit_many makes several")
        return [self._ask(job, options, (), arguments) for arguments in _listed(many)]

    def _submit_batch(self, asks: Sequence[Ask]) -> Sequence[str | Exception]:
        patience = PATIENCE if self._hf.store.dialect.locks_rows else None
        with self._hf.store.reserved():
            answers = self._write(asks, lambda tx: _submit(tx, asks), patience=patience)
        self._refused(answers)
        return answers

    def _submit_whole(self, asks: list[Ask]) -> list[str]:
        """All of them in one transaction of ours, or none."""
        try:
            return self._write(asks, lambda tx: _all_or_nothing(_submit(tx, asks, whole=True)))
        except QueueFull as error:
            self._refused([error])
            raise

    def _write(self, asks: Sequence[Ask], verb: Callable[[Transaction], T], *, patience: timedelta | None = None) -> T:
        committing = False

        def noted(tx: Transaction) -> T:
            nonlocal committing
            committing = False
            answer = verb(tx)
            committing = True
            return answer

        try:
            return self._hf.store.do(noted, patience=patience, own_patience=OWN_PATIENCE)
        finally:
            for ask in asks:
                ask.sent = ask.sent or committing

    def _refused(self, answers: Sequence[object], *, joined: bool = False) -> None:
        """Count refusals. In a caller's transaction they are written later: it may hold the only lock there is."""
        refused = [answer for answer in answers if isinstance(answer, QueueFull)]
        for full in refused:
            self._hf.counting.add("queue_rejected", full.queue)
        if refused and not joined:
            self._hf.counting.flush(self._hf.store)

    def _submit_gathered(self, ask: Ask) -> str:
        """With whoever else submits now. One that meets a caller's open transaction waits for it alone."""
        try:
            return self._gather.do(ask)
        except StoreBusy:
            if not self._hf.store.dialect.locks_rows:
                raise
            return self._submit_whole([ask])[0]

    async def _asubmit_gathered(self, ask: Ask) -> str:
        """The same for async callers; the event loop goes on while a thread of ours commits."""
        try:
            return await self._gather.ado(ask)
        except (StoreBusy, StoreUnavailable) as error:
            if isinstance(error, StoreBusy) and not self._hf.store.dialect.locks_rows:
                raise
            return await self._threads.run(self._retrying, lambda: self._submit_gathered(ask))

    def _submit_joined(self, connection: Any, asks: list[Ask]) -> list[str]:
        try:
            return caller_transaction.within(
                self._hf.store, connection, lambda tx: _all_or_nothing(_submit(tx, asks, whole=True))
            )
        except QueueFull as error:
            self._refused([error], joined=True)
            raise

    async def _asubmit_joined(self, connection: Any, asks: list[Ask]) -> list[str]:
        try:
            return await caller_transaction.awithin(
                self._hf.store, connection, lambda tx: _all_or_nothing(_submit(tx, asks, whole=True))
            )
        except QueueFull as error:
            self._refused([error], joined=True)
            raise

    def _retrying(self, submit: Callable[[], T]) -> T:
        """A connection that broke may have taken our commit's reply with it: the same ids again do no harm."""
        waited = threading.Event()
        for pause in (0.05, 0.2, 1.0, 2.0, None):
            try:
                return submit()
            except StoreUnavailable:
                if pause is None:
                    raise
                waited.wait(pause)
        raise AssertionError


def _submit(tx: Transaction, asks: Sequence[Ask], *, whole: bool = False) -> list[str | HoldfastError]:
    first = not any(ask.sent for ask in asks)
    return submit_runs(tx, [ask.within(tx) for ask in asks], first=first, whole=whole)


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
