"""Submitter: writes submissions alone, in a group commit, or in a caller transaction.

The first submission imports the modules that write it, because a process that only declares jobs never needs them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.jobs.importing import refuse_import
from holdfast.runs.handle import RunAccess
from holdfast.runs.submission import Draft, Pending
from holdfast.runtime import Runtime
from holdfast.support.errors import QueueFull, StoreBusy, StoreUnavailable
from holdfast.support.threads import Threads

if TYPE_CHECKING:
    from holdfast.store.group_commit import GroupCommit

T = TypeVar("T")


class Submitter:
    """Writes submissions and returns the ids of their runs. Handles use `access` to read the runs."""

    def __init__(self, runtime: Runtime, access: RunAccess) -> None:
        self.runtime, self.access = runtime, access
        self.threads = Threads("holdfast-submit", limit=4)

    @cached_property
    def _together(self) -> GroupCommit[Pending, str]:
        from holdfast.runs.submit import submit_together
        from holdfast.store.group_commit import GroupCommit

        return GroupCommit(lambda batch: submit_together(self.runtime.store, batch))

    def start(self, job: str, connection: Any) -> None:
        """Connect and check the tables before the first submission."""
        refuse_import(f"submits {job}")
        try:
            self.runtime.start()
        except StoreBusy as error:
            if connection is None:
                raise
            raise StoreBusy(f"{error}. Call hf.start() once before you open your own transaction") from error

    async def astart(self, job: str, connection: Any) -> None:
        """`start` for async callers."""
        refuse_import(f"submits {job}")
        if self.runtime.started:
            self.start(job, connection)
        else:
            await self.threads.run(self.start, job, connection)

    def submit(self, draft: Draft, connection: Any, *, by: str | None = None) -> str:
        """Write one submission, possibly in one commit with others; `by` names the operator for the audit log."""
        if by is not None:
            from holdfast.runs import audit

            audit.check(by)
        pending = Pending(draft, by=by)
        if connection is not None:
            return self._join(connection, [pending])[0]
        return _retrying(lambda: self._submit_together(pending))

    async def asubmit(self, draft: Draft, connection: Any) -> str:
        """`submit` for async callers; another thread commits, so the event loop is not blocked."""
        pending = Pending(draft)
        if connection is not None:
            return (await self._ajoin(connection, [pending]))[0]
        try:
            return await self._together.ado(pending)
        except (StoreBusy, StoreUnavailable) as error:
            if isinstance(error, StoreBusy) and not self.runtime.store.dialect.locks_rows:
                raise
            return await self.threads.run(_retrying, lambda: self._submit_together(pending))

    def submit_many(self, drafts: Sequence[Draft], connection: Any) -> list[str]:
        """Write all these submissions in one transaction, or none."""
        from holdfast.runs.submit import submit_whole

        pending = [Pending(draft) for draft in drafts]
        if connection is not None:
            return self._join(connection, pending)
        return _retrying(lambda: submit_whole(self.runtime.store, pending))

    async def asubmit_many(self, drafts: Sequence[Draft], connection: Any) -> list[str]:
        """`submit_many` for async callers."""
        if connection is None:
            return await self.threads.run(self.submit_many, drafts, None)
        return await self._ajoin(connection, [Pending(draft) for draft in drafts])

    def _submit_together(self, pending: Pending) -> str:
        """Submit in a group commit; if a lock is held elsewhere, submit alone, so that the others need not wait."""
        try:
            return self._together.do(pending)
        except StoreBusy:
            if not self.runtime.store.dialect.locks_rows:
                raise
            from holdfast.runs.submit import submit_whole

            return submit_whole(self.runtime.store, [pending])[0]

    # In a caller transaction, refusals are counted but not written: the transaction may hold the only write lock.

    def _join(self, connection: Any, pending: list[Pending]) -> list[str]:
        from holdfast.runs.submit import count_refusals, submit_all
        from holdfast.store import caller_transaction

        store = self.runtime.store
        try:
            return caller_transaction.within(store, connection, partial(submit_all, pending=pending))
        except QueueFull as error:
            count_refusals(store, [error], write=False)
            raise

    async def _ajoin(self, connection: Any, pending: list[Pending]) -> list[str]:
        from holdfast.runs.submit import count_refusals, submit_all
        from holdfast.store import caller_transaction

        store = self.runtime.store
        try:
            return await caller_transaction.awithin(store, connection, partial(submit_all, pending=pending))
        except QueueFull as error:
            count_refusals(store, [error], write=False)
            raise


def _retrying(submit: Callable[[], T]) -> T:
    """Retry after a lost connection. The commit may have succeeded, but the same ids create no second run."""
    pausing = threading.Event()
    for pause in (0.05, 0.2, 1.0, 2.0, None):
        try:
            return submit()
        except StoreUnavailable:
            if pause is None:
                raise
            pausing.wait(pause)
    raise AssertionError
