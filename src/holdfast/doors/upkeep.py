"""How a Holdfast's database is kept: its tables, what is too old, and whether all is as it should be."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.operate import doctor
from holdfast.operate.doctor import Check
from holdfast.operate.verify import verify
from holdfast.orchestrator import prune
from holdfast.runs import retention
from holdfast.runs.retention import Removed
from holdfast.store import connect, migrate
from holdfast.store.dialects.backup import Backup, Progress
from holdfast.store.store import Store
from holdfast.support.clock import Clock
from holdfast.support.settings import Settings
from holdfast.values.runs import Finding


class Upkeep:
    """What is done to a database as a whole."""

    settings: Settings
    clock: Clock
    _store: Store

    @property
    def store(self) -> Store:
        raise NotImplementedError

    @property
    def depot(self) -> ArtifactStore:
        raise NotImplementedError

    def include_object(self, object: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
        """For Alembic's `context.configure(include_object=hf.include_object)`: our tables are not yours to migrate."""
        table = name if type_ == "table" else getattr(getattr(object, "table", None), "name", None)
        return not (table or "").startswith(self.settings.prefix)

    def verify(self, *, artifacts: bool = False) -> list[Finding]:
        """Check on the live database that every run is in exactly one place, and more; what is wrong.

        With `artifacts` every artifact's file is read too, and compared with its checksum.
        """
        found = verify(self.store, lease=self.settings.lease)
        return found + (doctor.artifacts(self.store, self.depot) if artifacts else [])

    def retain(self, *, now: datetime | None = None, dry_run: bool = False) -> Removed:
        """Remove what has ended longer ago than the settings keep it, as workers do now and then; how much it was."""
        limits = retention.limits(self.settings, now or self.clock.now())
        steps = prune.steps(self.store, self.depot, limits, cursors={}, dry_run=dry_run)
        return sum(steps, start=Removed())

    def backup(self, path: str | Path, *, progress: Progress = lambda copied, total: None) -> Backup:
        """Copy a SQLite database to a new file while workers and servers go on; the copy is checked.

        `progress` is called with the pages that were copied and the pages in all.
        """
        return self._store.backup(Path(path), progress=progress)

    def migrate(self) -> int:
        """Create or update the tables; how many migrations were applied."""
        return migrate.migrate(self._store, prefix=connect.prefix(self.settings, self._store.dialect))

    def migration(self, *, since: int | None = None) -> list[str]:
        """The statements that `migrate` would apply, in order; `since` names a version and asks no database."""
        return migrate.script(self._store, prefix=connect.prefix(self.settings, self._store.dialect), since=since)

    def checkup(self) -> list[Check]:
        """What this Holdfast stands on: versions, clock, tables, workers; each with advice where it needs some."""
        return doctor.check(self._store, self.settings)
