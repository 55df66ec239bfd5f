"""Errors: every exception that Holdfast raises, each with a stable code."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import ClassVar


class HoldfastError(Exception):
    """The base class of all Holdfast errors. `code` is the class name in snake case, such as `queue_full`."""

    code: ClassVar[str] = "holdfast_error"

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:  # a subclass in another module inherits its parent's code or sets its own
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


class InvalidSetting(HoldfastError):
    """A setting has an invalid value."""


class InvalidPolicy(HoldfastError):
    """An option of a job or a submission is invalid."""


class JobExists(HoldfastError):
    """Two functions are registered under the same job name."""


class NotGuarded(HoldfastError):
    """A program submits a run, starts a worker or runs a job while it is imported: it needs a `__main__` guard."""


class UnknownJob(HoldfastError):
    """No function is registered under that job name in this process."""


class OnlyFromCode(HoldfastError):
    """Only the application's own code may start runs of this job.

    `start_at` is the address of the application's page that starts them, if there is one.
    """

    def __init__(self, message: str, *, start_at: str | None = None) -> None:
        super().__init__(message)
        self.start_at = start_at


class InvalidArguments(HoldfastError):
    """The arguments of a job or of a call are invalid."""


class NotSerialisable(HoldfastError):
    """A value can't be stored as JSON and read back, because of its type, its depth or a character in it."""


class Unreadable(HoldfastError, ValueError):
    """A stored value can't be decoded: it is damaged, or was written by hand or by another version."""


class TooLarge(HoldfastError):
    """A value is larger than the settings allow."""


class IdempotencyConflict(HoldfastError):
    """The idempotency key was used before with different arguments."""


class UnknownDependency(HoldfastError):
    """A submission depends on a run that does not exist."""


class QueueFull(HoldfastError):
    """A bounded queue has no capacity left; `retry_after` estimates when it may have some again."""

    def __init__(self, queue: str, *, limit: int, queued: int, retry_after: timedelta) -> None:
        name = "all queues together" if queue == "*" else f"queue {queue}"
        super().__init__(
            f"{name}: {queued} runs are queued or running, and the limit is {limit}; "
            f"try again in {retry_after.total_seconds():.0f} s"
        )
        self.queue, self.limit, self.queued, self.retry_after = queue, limit, queued, retry_after


class RunNotFound(HoldfastError):
    """There is no run with that id."""


class RunInUse(HoldfastError):
    """The run can't be deleted: it or a part of it has not ended, or something else refers to it."""


class BuildNotFound(HoldfastError):
    """There is no such build."""


class NoFingerprint(HoldfastError):
    """No fingerprint can be computed: a file is missing, or a value differs between machines."""


class PipelineNotFound(RunNotFound):
    """There is no run with that id, or it is not a pipeline."""


class StageNotDone(HoldfastError):
    """A pipeline can't be rerun from that stage: an earlier stage has no result to reuse."""


class RunFailed(HoldfastError):
    """The run ended without a result: it failed, timed out or was cancelled."""

    def __init__(self, run_id: str, state: str, failure_type: str | None, error: str | None) -> None:
        # The message shows the last line of the traceback; `error` has all of it.
        last = (error or "").strip().rpartition("\n")[2].strip()
        reason = ": ".join(part for part in (failure_type, last) if part) or "no reason recorded"
        super().__init__(f"run {run_id} {state}: {reason}")
        self.run_id, self.state, self.failure_type, self.error = run_id, state, failure_type, error


class ResultTimeout(HoldfastError, TimeoutError):
    """The run did not end within the time that the caller was willing to wait."""


class LeaseLost(HoldfastError):
    """This worker no longer holds the run's lease, or the run has ended: stop working and write nothing."""


class NotCommitted(HoldfastError):
    """A job finished its run in its own transaction (`ctx.finish`) but did not commit it."""


class Cancelled(HoldfastError):
    """The run is being cancelled; raise it from a job when `ctx.cancelled` is true."""


class ScheduleNotFound(HoldfastError):
    """There is no schedule with that name."""


class SlotTaken(HoldfastError):
    """That slot of the schedule is already decided; `run_id` is the id of its run, if it has one."""

    def __init__(self, message: str, *, run_id: str | None) -> None:
        super().__init__(message)
        self.run_id = run_id


class StillRunning(HoldfastError):
    """An earlier run of the schedule has not ended, and the overlap policy does not let another one start."""


class NoWorker(HoldfastError):
    """No live worker can run that slot, so it can't be claimed by hand."""


class DuplicateStep(HoldfastError):
    """A step name was used twice in one run."""


class StepNotFound(HoldfastError):
    """The run has no stored step with that name."""


class ArtifactNotFound(HoldfastError):
    """There is no artifact with that name, or its file is missing."""


class ArtifactCorrupt(HoldfastError):
    """An artifact's file has changed since it was written: its size or checksum differs."""


class ArtifactStoreUnavailable(HoldfastError):
    """Artifacts can't be written or read: the disk is full, a permission is missing or the object storage is down."""


class WorkerExists(HoldfastError):
    """Another worker has the exclusive name or the single-process lock that this worker needs."""


class WorkerNotFound(HoldfastError):
    """There is no live worker with that name."""


class BackupFailed(HoldfastError):
    """No backup was made: the file exists, can't be written, or differs from the database after the copy."""


class StoreBusy(HoldfastError):
    """The database is locked, or all connections are in use. Nothing was written; try again."""

    since: float | None = None
    """When the transaction began to wait, as `elapsed` time of the clock."""


class StoreUnavailable(HoldfastError):
    """The database can't be reached, or the connection broke."""


class StoreRefused(StoreUnavailable):
    """The database refuses the connection: a wrong user or password, or a missing database, folder or permission."""


class StoreUnsafe(HoldfastError):
    """Writing to the SQLite file is no longer safe: the file, its `-wal` file or this process's lock on it is gone.

    Every further write is refused. Workers and servers end; start them again after you have removed the cause.
    """


class WrongConnection(HoldfastError):
    """The given connection can't be used: it belongs to another database, or its transaction is unsuitable."""


class WrongDatabase(HoldfastError):
    """A test would use a database other than the framework's test database, or the framework has changed databases.

    Nothing was written.
    """


class WrongSqliteLibrary(HoldfastError):
    """The connection and the store use different SQLite libraries.

    Two SQLite libraries in one process release each other's file locks, and commits are lost.
    """


class SchemaTooNew(HoldfastError):
    """A newer version of Holdfast has migrated the database."""


class SchemaMissing(HoldfastError):
    """The database has no Holdfast tables, or outdated ones, and `auto_migrate` is off."""


class NotSignedIn(HoldfastError):
    """The request had no token, or one that the server does not know."""


class NotAllowed(HoldfastError):
    """The token's role does not allow this action."""


class ServerUnavailable(HoldfastError):
    """The server can't be reached, or is not a Holdfast server."""


class ServerRefused(HoldfastError):
    """The server refused the request for an HTTP-specific reason; `problem` is its code."""

    def __init__(self, message: str, *, problem: str = "http_error") -> None:
        super().__init__(message)
        self.problem = problem


class TokenNotFound(HoldfastError):
    """There is no token with that name."""


class TokenExists(HoldfastError):
    """There is already a token with that name."""
