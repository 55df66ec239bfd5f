"""Environments: the virtual environments on this host, each in a folder named after the run that built it.

    .partial-NAME ──install, check──▶ rename to NAME ──▶ NAME/complete ──pack──▶ an archive that every host can get
    .partial-NAME ──unpack──────────▶ rename to NAME ──▶ NAME/complete

A build creates an environment once. A host that does not have it restores it from the archive and installs nothing.
Only an environment with the file `complete` is used. A process that is killed earlier leaves a partial folder, and the
next process starts again. Using an environment takes a shared lock; creating or removing one takes an exclusive lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tarfile
import time
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from pathlib import Path

from apps.ade import configurations, environment_archive, folders, install, process
from apps.ade.configurations import Files
from apps.ade.install import Log
from apps.shared.files import sync_folder
from holdfast import Artifact, ArtifactNotFound, ArtifactStoreUnavailable, RunNotFound

COMPLETE = "complete"
PARTIAL = ".partial-"
BLOCK = 1 << 20


class BuildFailed(Exception):
    """The environment could not be created; the message says why."""


class EnvironmentLost(Exception):
    """The archive of an environment is missing, damaged or unreachable, so no host can restore it."""


class NotRestored(Exception):
    """This host can't restore an environment, but another one may."""


class Environments:
    """The environments in one folder of this host."""

    def __init__(self, folder: Path, *, limits: process.Limits) -> None:
        self._folder, self._limits = folder, limits

    def path(self, name: str) -> Path:
        return self._folder / name

    def is_ready(self, name: str) -> bool:
        return (self.path(name) / COMPLETE).exists()

    def create(self, name: str, files: Files, *, log: Log) -> None:
        """Create the environment unless it exists; raise BuildFailed if it can't be created."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with folders.locked(self._lock(name)):
            if self.is_ready(name):
                log("the environment already exists and is complete")
                return
            self._create(name, files, log)

    def pack(self, name: str, target: Path) -> None:
        """Write a complete environment to an archive."""
        with folders.locked(self._lock(name), shared=True):
            if not self.is_ready(name):
                raise BuildFailed("the environment was removed before it was stored")
            environment_archive.pack(self.path(name), target, without=[COMPLETE])

    @contextlib.contextmanager
    def use(self, name: str, stored: Callable[[], Artifact], *, log: Log) -> Iterator[Path]:
        """Yield the path of an environment, restored from its archive if this host does not have it.

        The environment is not removed while it is in use. Raises EnvironmentLost if the archive is missing, damaged or
        unreachable, and NotRestored if this host can't unpack it.
        """
        while True:
            if not self.is_ready(name):
                self._restore(name, stored, log)
            with folders.locked(self._lock(name), shared=True):
                if self.is_ready(name):
                    os.utime(self.path(name) / COMPLETE)  # records the time of the last use
                    yield self.path(name)
                    return

    def remove_unused(self, *, needed: Callable[[], Collection[str]], unused_for: timedelta) -> list[str]:
        """Remove partial environments, and old ones that no run needs; return their names."""
        present = {path.name.removeprefix(PARTIAL) for path in self._folder.glob("*") if path.is_dir()}
        old = sorted(name for name in present if not name.startswith(".") and self._is_old(name, unused_for))
        kept = needed() if old else ()
        removed = []
        for name in old:
            if name in kept:
                continue
            with folders.locked(self._lock(name), wait=False) as acquired:
                if acquired and self._is_old(name, unused_for):
                    self._remove(name)
                    self._lock(name).unlink(missing_ok=True)
                    removed.append(name)
        return removed

    def _create(self, name: str, files: Files, log: Log) -> None:
        partial = self._folder / f"{PARTIAL}{name}"
        self._remove(name)
        try:
            install.install(partial, configurations.dependencies(files), log=log)
            self._check(partial, files, log)
        except (install.InstallFailed, configurations.BadConfiguration, OSError) as error:
            folders.remove(partial)
            raise BuildFailed(str(error)) from error
        except BaseException:
            folders.remove(partial)
            raise
        partial.rename(self.path(name))
        self._mark(name)
        log("the environment is complete")

    def _restore(self, name: str, stored: Callable[[], Artifact], log: Log) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with folders.locked(self._lock(name)):
            if self.is_ready(name):
                return
            log("this host does not have the environment; restoring it from the artifact store")
            self._remove(name)
            partial, archive = self._folder / f"{PARTIAL}{name}", self._folder / f"{PARTIAL}{name}.tar.gz"
            try:
                _download(stored, archive)
                environment_archive.unpack(archive, partial)
            except (environment_archive.WrongPlatform, tarfile.TarError, OSError) as error:
                raise NotRestored(f"the environment can't be restored on this host: {error}") from error
            finally:
                archive.unlink(missing_ok=True)
            partial.rename(self.path(name))
            self._mark(name)
            log("the environment is restored")

    def _check(self, partial: Path, files: Files, log: Log) -> None:
        """Check that the engine starts in the environment and loads the configuration."""
        with folders.temporary_folder(self._folder.parent / "checks", partial.name.removeprefix(PARTIAL)) as folder:
            configurations.write_to(files, folder)
            output: list[bytes] = []
            ended = process.execute(
                [install.python_of(partial), "-I", "-m", "ade_engine", "check", "--config", folder],
                folder=folder,
                reads=[partial],
                limits=self._limits,
                on_line=output.append,
            )
        if ended.code:
            raise BuildFailed(f"the configuration did not load: {_reason(output) or ended.reason or ended.code}")
        log("the engine starts in the environment and loads the configuration")

    def _mark(self, name: str) -> None:
        """Mark the environment as complete, after its files are safely on the disk."""
        os.sync()
        with (self.path(name) / COMPLETE).open("x") as file:
            file.write(f"{time.time():.0f}\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.path(name))
        sync_folder(self._folder)

    def _remove(self, name: str) -> None:
        (self.path(name) / COMPLETE).unlink(missing_ok=True)
        folders.remove(self.path(name))
        folders.remove(self._folder / f"{PARTIAL}{name}")
        (self._folder / f"{PARTIAL}{name}.tar.gz").unlink(missing_ok=True)

    def _is_old(self, name: str, unused_for: timedelta) -> bool:
        """Return whether the environment has been unused for this long; a partial one always counts as old."""
        try:
            return time.time() - (self.path(name) / COMPLETE).stat().st_mtime >= unused_for.total_seconds()
        except FileNotFoundError:
            return True

    def _lock(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _download(stored: Callable[[], Artifact], target: Path) -> None:
    """Copy the archive to this host and check its checksum."""
    try:
        artifact, digest = stored(), hashlib.sha256()
        with artifact.open() as source, target.open("wb") as file:
            while block := source.read(BLOCK):
                digest.update(block)
                file.write(block)
    except (ArtifactNotFound, ArtifactStoreUnavailable, RunNotFound) as error:
        raise EnvironmentLost(str(error)) from error
    if digest.hexdigest() != artifact.sha256:
        raise EnvironmentLost(f"{artifact.address} does not match its checksum")


def _reason(output: list[bytes]) -> str | None:
    """Return why `ade_engine check` failed: it prints the reason as JSON in its last line."""
    try:
        failure = json.loads(output[-1])
        return f"{failure['message']} ({failure['code']})"
    except (IndexError, ValueError, TypeError, KeyError):
        return None
