"""Errors: what went wrong, with a stable code and a sentence that says what to do."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import ClassVar


class HoldfastError(Exception):
    """The root of every error that Holdfast raises. `code` is its class's name in lower case, such as `queue_full`."""

    code: ClassVar[str] = "holdfast_error"

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:  # elsewhere a subclass has the code of its parent, or says its own
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


class InvalidSetting(HoldfastError):
    """A setting has a value that can't work."""


class InvalidPolicy(HoldfastError):
    """A job or a submission asks for something that makes no sense."""


class JobExists(HoldfastError):
    """Two functions claim one job name."""


class NotGuarded(HoldfastError):
    """A program that is only imported submits a run, starts a worker or runs a job: it needs a `__main__` guard."""


class UnknownJob(HoldfastError):
    """No function is registered under that job name here."""


class OnlyFromCode(HoldfastError):
    """Only the application's own code starts runs of this job; `start_at` is the address of its page, if any."""

    def __init__(self, message: str, *, start_at: str | None = None) -> None:
        super().__init__(message)
        self.start_at = start_at


class InvalidArguments(HoldfastError):
    """The arguments do not fit the job's signature."""


class NotSerialisable(HoldfastError):
    """A value can't be stored as JSON and read back: its type, its depth or a character in it does not allow it."""


class Unreadable(HoldfastError, ValueError):
    """A stored value can't be decoded: it was written by hand, by another version, or is damaged."""


class TooLarge(HoldfastError):
    """A value is larger than the settings allow."""


class IdempotencyConflict(HoldfastError):
    """The idempotency key was used before, with other arguments."""


class UnknownNeed(HoldfastError):
    """A run was asked to wait for a run that does not exist."""


class QueueFull(HoldfastError):
    """A bounded queue has no seat left; `retry_after` says when there may be one."""

    def __init__(self, queue: str, *, limit: int, queued: int, retry_after: timedelta) -> None:
        name = "all queues together" if queue == "*" else f"queue {queue}"
        super().__init__(
            f"{name}: {queued} runs are queued or running, and {limit} is the limit; "
            f"try again in {retry_after.total_seconds():.0f} s"
        )
        self.queue, self.limit, self.queued, self.retry_after = queue, limit, queued, retry_after


class RunNotFound(HoldfastError):
    """There is no run with that id."""


class RunInUse(HoldfastError):
    """The run can't be deleted: it or a part of it has not ended, or something else names it."""


class BuildNotFound(HoldfastError):
    """No one has asked for that build."""


class NoFingerprint(HoldfastError):
    """Something can't be given a fingerprint: a file that is not there, or a value that differs between machines."""


class PipelineNotFound(RunNotFound):
    """There is no run with that id, or it is no pipeline."""


class StageNotDone(HoldfastError):
    """A pipeline can't be rerun from there: a stage before it has no result to use again."""


class RunFailed(HoldfastError):
    """The run ended without a result: it failed, timed out or was cancelled."""

    def __init__(self, run_id: str, state: str, failure_type: str | None, error: str | None) -> None:
        # A traceback comes to its last line; `error` has all of it.
        last = (error or "").strip().rpartition("\n")[2].strip()
        reason = ": ".join(part for part in (failure_type, last) if part) or "no reason recorded"
        super().__init__(f"run {run_id} {state}: {reason}")
        self.run_id, self.state, self.failure_type, self.error = run_id, state, failure_type, error


class ResultTimeout(HoldfastError, TimeoutError):
    """The run had not ended when the time to wait for it was over."""


class LeaseLost(HoldfastError):
    """Someone else has the run, or it has ended: stop the work, write nothing."""


class NotCommitted(HoldfastError):
    """A job ended in a transaction of its own (`ctx.finish`) that was not committed."""


class Cancelled(HoldfastError):
    """The run was asked to stop; raise it from a job that has seen `ctx.cancelled`."""


class ScheduleNotFound(HoldfastError):
    """There is no schedule of that name."""


class SlotTaken(HoldfastError):
    """That slot of the schedule is decided already; `run_id` names its run, if it has one."""

    def __init__(self, message: str, *, run_id: str | None) -> None:
        super().__init__(message)
        self.run_id = run_id


class StillRunning(HoldfastError):
    """An earlier run of the schedule has not ended, and its overlap policy lets no other start."""


class NoWorker(HoldfastError):
    """No live worker would run that slot, so it can't be claimed by hand."""


class DuplicateStep(HoldfastError):
    """A step name was used twice in one run."""


class StepNotFound(HoldfastError):
    """The run remembers no step of that name."""


class ArtifactNotFound(HoldfastError):
    """There is no artifact of that name, or its file is gone."""


class ArtifactCorrupt(HoldfastError):
    """An artifact's file is not as it was written: its size or checksum differs."""


class DepotUnavailable(HoldfastError):
    """Artifacts can't be written or read: a full disk, a missing right, an object storage that is away."""


class WorkerExists(HoldfastError):
    """Another worker holds the lock that this one needs."""


class WorkerNotFound(HoldfastError):
    """There is no live worker of that name."""


class BackupFailed(HoldfastError):
    """No backup was made: the file exists, can't be written, or is not what was copied."""


class StoreBusy(HoldfastError):
    """The database is locked by someone else, or all connections are in use; nothing was written, try again."""


class StoreUnavailable(HoldfastError):
    """The database can't be reached, or the connection broke."""


class StoreRefused(StoreUnavailable):
    """The database refuses to be opened: a wrong password, an unknown user, or no such database, folder or right."""


class StoreUnsafe(HoldfastError):
    """Writing to the SQLite file is no longer safe: the file, its `-wal` or this process's lock on it is gone.

    Every further write is refused. Workers and servers end; start them again when the cause is removed.
    """


class WrongConnection(HoldfastError):
    """The connection given to join can't be used: it is to another database, or its transaction can't serve."""


class WrongDatabase(HoldfastError):
    """A test would use another database than the framework's test database, or the framework has changed databases.

    Nothing was written.
    """


class WrongSqliteLibrary(HoldfastError):
    """The connection belongs to another SQLite library than the store's.

    Two SQLite libraries in one process drop each other's file locks, and commits are lost.
    """


class SchemaTooNew(HoldfastError):
    """The database was migrated by a newer Holdfast than this one."""


class SchemaMissing(HoldfastError):
    """The database has no Holdfast tables, or old ones, and migrating was not allowed."""


class NotSignedIn(HoldfastError):
    """The server was given no token, or none that it knows."""


class NotAllowed(HoldfastError):
    """The token's role may look, but not do this."""


class ServerUnavailable(HoldfastError):
    """The server can't be reached, or what answers there is none of ours."""


class ServerRefused(HoldfastError):
    """The server refused the request for a reason that exists only over HTTP; `problem` is its code."""

    def __init__(self, message: str, *, problem: str = "http_error") -> None:
        super().__init__(message)
        self.problem = problem


class PassNotFound(HoldfastError):
    """No one of that name has a pass."""


class PassExists(HoldfastError):
    """Someone of that name has a pass already."""
