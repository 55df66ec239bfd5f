"""Holdfast: background work that starts once, survives a crash and can be explained, on the database you already have.

Only this module, `holdfast.client`, `holdfast.django`, `holdfast.testing` and `holdfast.web` are public. A name is
imported when it is first used: a process that only submits never loads the worker.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.app import Holdfast as Holdfast
    from holdfast.builds.decorator import BuildJob as BuildJob
    from holdfast.builds.fingerprints import fingerprint as fingerprint
    from holdfast.jobs.children import Child as Child
    from holdfast.jobs.context import Context as Context
    from holdfast.jobs.context import Fence as Fence
    from holdfast.jobs.context import RunInfo as RunInfo
    from holdfast.jobs.job import Job as Job
    from holdfast.operate.doctor import Check as Check
    from holdfast.pipelines.pipeline import Pipeline as Pipeline
    from holdfast.runs.handle import Run as Run
    from holdfast.runs.retention import Pruned as Pruned
    from holdfast.store.dialects.backup import Backup as Backup
    from holdfast.support.errors import ArtifactCorrupt as ArtifactCorrupt
    from holdfast.support.errors import ArtifactNotFound as ArtifactNotFound
    from holdfast.support.errors import ArtifactStoreUnavailable as ArtifactStoreUnavailable
    from holdfast.support.errors import BackupFailed as BackupFailed
    from holdfast.support.errors import BuildNotFound as BuildNotFound
    from holdfast.support.errors import Cancelled as Cancelled
    from holdfast.support.errors import DuplicateStep as DuplicateStep
    from holdfast.support.errors import HoldfastError as HoldfastError
    from holdfast.support.errors import IdempotencyConflict as IdempotencyConflict
    from holdfast.support.errors import InvalidArguments as InvalidArguments
    from holdfast.support.errors import InvalidPolicy as InvalidPolicy
    from holdfast.support.errors import InvalidSetting as InvalidSetting
    from holdfast.support.errors import JobExists as JobExists
    from holdfast.support.errors import LeaseLost as LeaseLost
    from holdfast.support.errors import NoFingerprint as NoFingerprint
    from holdfast.support.errors import NotAllowed as NotAllowed
    from holdfast.support.errors import NotCommitted as NotCommitted
    from holdfast.support.errors import NotGuarded as NotGuarded
    from holdfast.support.errors import NotSerialisable as NotSerialisable
    from holdfast.support.errors import NotSignedIn as NotSignedIn
    from holdfast.support.errors import NoWorker as NoWorker
    from holdfast.support.errors import OnlyFromCode as OnlyFromCode
    from holdfast.support.errors import PipelineNotFound as PipelineNotFound
    from holdfast.support.errors import QueueFull as QueueFull
    from holdfast.support.errors import ResultTimeout as ResultTimeout
    from holdfast.support.errors import RunFailed as RunFailed
    from holdfast.support.errors import RunInUse as RunInUse
    from holdfast.support.errors import RunNotFound as RunNotFound
    from holdfast.support.errors import ScheduleNotFound as ScheduleNotFound
    from holdfast.support.errors import SchemaMissing as SchemaMissing
    from holdfast.support.errors import SchemaTooNew as SchemaTooNew
    from holdfast.support.errors import ServerRefused as ServerRefused
    from holdfast.support.errors import ServerUnavailable as ServerUnavailable
    from holdfast.support.errors import SlotTaken as SlotTaken
    from holdfast.support.errors import StageNotDone as StageNotDone
    from holdfast.support.errors import StepNotFound as StepNotFound
    from holdfast.support.errors import StillRunning as StillRunning
    from holdfast.support.errors import StoreBusy as StoreBusy
    from holdfast.support.errors import StoreRefused as StoreRefused
    from holdfast.support.errors import StoreUnavailable as StoreUnavailable
    from holdfast.support.errors import StoreUnsafe as StoreUnsafe
    from holdfast.support.errors import TokenExists as TokenExists
    from holdfast.support.errors import TokenNotFound as TokenNotFound
    from holdfast.support.errors import TooLarge as TooLarge
    from holdfast.support.errors import UnknownDependency as UnknownDependency
    from holdfast.support.errors import UnknownJob as UnknownJob
    from holdfast.support.errors import Unreadable as Unreadable
    from holdfast.support.errors import WorkerExists as WorkerExists
    from holdfast.support.errors import WorkerNotFound as WorkerNotFound
    from holdfast.support.errors import WrongConnection as WrongConnection
    from holdfast.support.errors import WrongDatabase as WrongDatabase
    from holdfast.support.errors import WrongSqliteLibrary as WrongSqliteLibrary
    from holdfast.support.settings import Settings as Settings
    from holdfast.values.artifacts import Artifact as Artifact
    from holdfast.values.audit import AuditEntry as AuditEntry
    from holdfast.values.builds import Build as Build
    from holdfast.values.builds import BuildRequest as BuildRequest
    from holdfast.values.events import Event as Event
    from holdfast.values.events import Events as Events
    from holdfast.values.events import TimelinePage as TimelinePage
    from holdfast.values.filters import Count as Count
    from holdfast.values.filters import RunFilter as RunFilter
    from holdfast.values.pages import Page as Page
    from holdfast.values.pages import SearchPage as SearchPage
    from holdfast.values.pipelines import PipelineInfo as PipelineInfo
    from holdfast.values.pipelines import StageInfo as StageInfo
    from holdfast.values.policies import Policy as Policy
    from holdfast.values.retries import GiveUp as GiveUp
    from holdfast.values.retries import Retry as Retry
    from holdfast.values.retries import Snooze as Snooze
    from holdfast.values.retries import TryAgain as TryAgain
    from holdfast.values.runs import Finding as Finding
    from holdfast.values.runs import Snapshot as Snapshot
    from holdfast.values.runs import Why as Why
    from holdfast.values.schedules import ScheduleInfo as ScheduleInfo
    from holdfast.values.schedules import Slot as Slot
    from holdfast.values.tokens import Token as Token
    from holdfast.worker.worker import Worker as Worker

    __version__: str

_NAMES = {
    "app": "Holdfast",
    "builds.decorator": "BuildJob",
    "builds.fingerprints": "fingerprint",
    "jobs.children": "Child",
    "jobs.context": "Context Fence RunInfo",
    "jobs.job": "Job",
    "operate.doctor": "Check",
    "pipelines.pipeline": "Pipeline",
    "runs.handle": "Run",
    "runs.retention": "Pruned",
    "store.dialects.backup": "Backup",
    "support.errors": (
        "ArtifactCorrupt ArtifactNotFound BackupFailed BuildNotFound Cancelled ArtifactStoreUnavailable DuplicateStep "
        "HoldfastError IdempotencyConflict InvalidArguments InvalidPolicy InvalidSetting JobExists LeaseLost "
        "NoFingerprint NoWorker NotAllowed NotCommitted NotGuarded NotSerialisable NotSignedIn OnlyFromCode "
        "TokenExists TokenNotFound PipelineNotFound QueueFull ResultTimeout RunFailed RunInUse RunNotFound "
        "ScheduleNotFound SchemaMissing SchemaTooNew ServerRefused ServerUnavailable SlotTaken StageNotDone "
        "StepNotFound StillRunning StoreBusy StoreRefused StoreUnavailable StoreUnsafe TooLarge UnknownJob "
        "UnknownDependency Unreadable WorkerExists WorkerNotFound WrongConnection WrongDatabase WrongSqliteLibrary"
    ),
    "support.settings": "Settings",
    "values.artifacts": "Artifact",
    "values.audit": "AuditEntry",
    "values.builds": "Build BuildRequest",
    "values.events": "Event Events TimelinePage",
    "values.filters": "Count RunFilter",
    "values.pages": "Page SearchPage",
    "values.pipelines": "PipelineInfo StageInfo",
    "values.policies": "Policy",
    "values.retries": "GiveUp Retry Snooze TryAgain",
    "values.runs": "Finding Snapshot Why",
    "values.schedules": "ScheduleInfo Slot",
    "values.tokens": "Token",
    "worker.worker": "Worker",
}
"""The public names of each module."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*sorted(_MODULES), "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("holdfast")
    elif name in _MODULES:
        value = getattr(import_module(f"holdfast.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
