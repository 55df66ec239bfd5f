"""Holdfast: background work that starts once, survives a crash and can be explained, on the database you already have.

Only this module and `holdfast.testing` are public.
"""

from holdfast.app import Holdfast
from holdfast.checkups import Check
from holdfast.context import Context, Fence, RunInfo
from holdfast.errors import (
    Cancelled,
    DuplicateStep,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidPolicy,
    InvalidSetting,
    JobExists,
    LeaseLost,
    NotSerialisable,
    ResultTimeout,
    RunFailed,
    RunNotFound,
    SchemaMissing,
    SchemaTooNew,
    StoreBusy,
    StoreUnavailable,
    TooLarge,
    UnknownJob,
    UnknownNeed,
    WorkerExists,
    WrongConnection,
    WrongSqliteLibrary,
)
from holdfast.events import Event
from holdfast.handles import Run
from holdfast.inspections import Finding, Why
from holdfast.jobs import Job
from holdfast.policies import Policy
from holdfast.retries import Retry, TryAgain
from holdfast.runs import Snapshot
from holdfast.settings import Settings
from holdfast.version import VERSION as __version__
from holdfast.worker.worker import Worker

__all__ = [
    "Cancelled",
    "Check",
    "Context",
    "DuplicateStep",
    "Event",
    "Fence",
    "Finding",
    "Holdfast",
    "HoldfastError",
    "IdempotencyConflict",
    "InvalidArguments",
    "InvalidPolicy",
    "InvalidSetting",
    "Job",
    "JobExists",
    "LeaseLost",
    "NotSerialisable",
    "Policy",
    "ResultTimeout",
    "Retry",
    "Run",
    "RunFailed",
    "RunInfo",
    "RunNotFound",
    "SchemaMissing",
    "SchemaTooNew",
    "Settings",
    "Snapshot",
    "StoreBusy",
    "StoreUnavailable",
    "TooLarge",
    "TryAgain",
    "UnknownJob",
    "UnknownNeed",
    "Why",
    "Worker",
    "WorkerExists",
    "WrongConnection",
    "WrongSqliteLibrary",
    "__version__",
]
