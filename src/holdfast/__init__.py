"""Holdfast: background work that starts once, survives a crash and can be explained, on the database you already have.

Only this module, `holdfast.client`, `holdfast.django`, `holdfast.testing` and `holdfast.web` are public.
"""

from holdfast.app import Holdfast
from holdfast.build_jobs import BuildJob
from holdfast.builds import Build
from holdfast.checkups import Check
from holdfast.children import Child
from holdfast.context import Context, Fence, RunInfo
from holdfast.depots.base import Artifact
from holdfast.doors.schedules import ScheduleInfo
from holdfast.errors import (
    ArtifactCorrupt,
    ArtifactNotFound,
    BackupFailed,
    BuildNotFound,
    Cancelled,
    DepotUnavailable,
    DuplicateStep,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidPolicy,
    InvalidSetting,
    JobExists,
    LeaseLost,
    NoFingerprint,
    NotAllowed,
    NotCommitted,
    NotGuarded,
    NotSerialisable,
    NotSignedIn,
    NoWorker,
    OnlyFromCode,
    PassExists,
    PassNotFound,
    PipelineNotFound,
    QueueFull,
    ResultTimeout,
    RunFailed,
    RunInUse,
    RunNotFound,
    ScheduleNotFound,
    SchemaMissing,
    SchemaTooNew,
    ServerRefused,
    ServerUnavailable,
    SlotTaken,
    StageNotDone,
    StepNotFound,
    StillRunning,
    StoreBusy,
    StoreRefused,
    StoreUnavailable,
    StoreUnsafe,
    TooLarge,
    UnknownJob,
    UnknownNeed,
    Unreadable,
    WorkerExists,
    WorkerNotFound,
    WrongConnection,
    WrongDatabase,
    WrongSqliteLibrary,
)
from holdfast.events import Event, Events
from holdfast.filters import RunFilter
from holdfast.fingerprints import fingerprint
from holdfast.handles import Run
from holdfast.inspections import Finding
from holdfast.jobs import Job
from holdfast.news import News
from holdfast.operations import Operation
from holdfast.passes import Pass
from holdfast.pipelines import Pipeline
from holdfast.policies import Policy
from holdfast.reasons import Why
from holdfast.retention import Removed
from holdfast.retries import GiveUp, Retry, TryAgain
from holdfast.runs import Snapshot
from holdfast.searches import Count, Page
from holdfast.settings import Settings
from holdfast.slots import Slot
from holdfast.stages import PipelineInfo
from holdfast.standings import StageInfo
from holdfast.store.dialects.backup import Backup
from holdfast.version import VERSION as __version__
from holdfast.wishes import Wish
from holdfast.worker.worker import Worker

__all__ = [
    "Artifact",
    "ArtifactCorrupt",
    "ArtifactNotFound",
    "Backup",
    "BackupFailed",
    "Build",
    "BuildJob",
    "BuildNotFound",
    "Cancelled",
    "Check",
    "Child",
    "Context",
    "Count",
    "DepotUnavailable",
    "DuplicateStep",
    "Event",
    "Events",
    "Fence",
    "Finding",
    "GiveUp",
    "Holdfast",
    "HoldfastError",
    "IdempotencyConflict",
    "InvalidArguments",
    "InvalidPolicy",
    "InvalidSetting",
    "Job",
    "JobExists",
    "LeaseLost",
    "News",
    "NoFingerprint",
    "NoWorker",
    "NotAllowed",
    "NotCommitted",
    "NotGuarded",
    "NotSerialisable",
    "NotSignedIn",
    "OnlyFromCode",
    "Operation",
    "Page",
    "Pass",
    "PassExists",
    "PassNotFound",
    "Pipeline",
    "PipelineInfo",
    "PipelineNotFound",
    "Policy",
    "QueueFull",
    "Removed",
    "ResultTimeout",
    "Retry",
    "Run",
    "RunFailed",
    "RunFilter",
    "RunInUse",
    "RunInfo",
    "RunNotFound",
    "ScheduleInfo",
    "ScheduleNotFound",
    "SchemaMissing",
    "SchemaTooNew",
    "ServerRefused",
    "ServerUnavailable",
    "Settings",
    "Slot",
    "SlotTaken",
    "Snapshot",
    "StageInfo",
    "StageNotDone",
    "StepNotFound",
    "StillRunning",
    "StoreBusy",
    "StoreRefused",
    "StoreUnavailable",
    "StoreUnsafe",
    "TooLarge",
    "TryAgain",
    "UnknownJob",
    "UnknownNeed",
    "Unreadable",
    "Why",
    "Wish",
    "Worker",
    "WorkerExists",
    "WorkerNotFound",
    "WrongConnection",
    "WrongDatabase",
    "WrongSqliteLibrary",
    "__version__",
    "fingerprint",
]
