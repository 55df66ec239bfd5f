"""Environments: on this host, what builds have made; each in a folder called by the run that made it.

    .making-NAME ──install, check──▶ rename to NAME ──▶ NAME/complete ──pack──▶ an archive that every host can get
    .making-NAME ──unpack──────────▶ rename to NAME ──▶ NAME/complete        only what is marked complete is used

A build makes an environment, once. A host that does not have it restores it from the archive; it installs nothing.
Killed at any moment, a making leaves a folder that is not complete; the next one of that name begins anew. Who uses an
environment holds a shared lock on it, who makes or removes one an exclusive lock.
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
from apps.ade.install import Tell
from apps.shared.files import sync_folder
from holdfast import Artifact, ArtifactNotFound, DepotUnavailable, RunNotFound

MARK = "complete"
MAKING = ".making-"
BLOCK = 1 << 20


class BuildFailed(Exception):
    """There is no environment, and why."""


class EnvironmentLost(Exception):
    """The archive of an environment is missing, damaged or out of reach: no host can restore it."""


class NotRestored(Exception):
    """This host can't restore an environment; another one may."""


class Environments:
    """The environments in one folder of this host."""

    def __init__(self, folder: Path, *, limits: process.Limits) -> None:
        self._folder, self._limits = folder, limits

    def path(self, name: str) -> Path:
        return self._folder / name

    def is_ready(self, name: str) -> bool:
        return (self.path(name) / MARK).exists()

    def make(self, name: str, files: Files, *, tell: Tell) -> None:
        """Have this environment, made now unless it is there already; BuildFailed if it can't be made."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with folders.locked(self._lock(name)):
            if self.is_ready(name):
                tell("it is there already, complete")
                return
            self._make(name, files, tell)

    def pack(self, name: str, target: Path) -> None:
        """Write an environment that is complete to an archive."""
        with folders.locked(self._lock(name), shared=True):
            if not self.is_ready(name):
                raise BuildFailed("the environment was removed before it was stored")
            environment_archive.pack(self.path(name), target, without=[MARK])

    @contextlib.contextmanager
    def used(self, name: str, stored: Callable[[], Artifact], *, tell: Tell) -> Iterator[Path]:
        """An environment, which no one removes meanwhile; restored from its archive if this host does not have it.

        EnvironmentLost if the archive is missing, damaged or out of reach; NotRestored if this host can't unpack it.
        """
        while True:
            if not self.is_ready(name):
                self._restore(name, stored, tell)
            with folders.locked(self._lock(name), shared=True):
                if self.is_ready(name):
                    os.utime(self.path(name) / MARK)  # it was used just now
                    yield self.path(name)
                    return

    def collect(self, *, needed: Callable[[], Collection[str]], unused_for: timedelta) -> list[str]:
        """Remove what no run needs or has used for so long, and what was left half-made."""
        there = {path.name.removeprefix(MAKING) for path in self._folder.glob("*") if path.is_dir()}
        old = sorted(name for name in there if not name.startswith(".") and self._is_old(name, unused_for))
        kept = needed() if old else ()
        removed = []
        for name in old:
            if name in kept:
                continue
            with folders.locked(self._lock(name), wait=False) as ours:
                if ours and self._is_old(name, unused_for):
                    self._remove(name)
                    self._lock(name).unlink(missing_ok=True)
                    removed.append(name)
        return removed

    def _make(self, name: str, files: Files, tell: Tell) -> None:
        making = self._folder / f"{MAKING}{name}"
        self._remove(name)
        try:
            install.install(making, configurations.dependencies(files), tell=tell)
            self._check(making, files, tell)
        except (install.InstallFailed, configurations.BadConfiguration, OSError) as error:
            folders.remove(making)
            raise BuildFailed(str(error)) from error
        except BaseException:
            folders.remove(making)
            raise
        making.rename(self.path(name))
        self._mark(name)
        tell("the environment is complete")

    def _restore(self, name: str, stored: Callable[[], Artifact], tell: Tell) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with folders.locked(self._lock(name)):
            if self.is_ready(name):
                return
            tell("this host does not have the environment: it is restored from the artifact store")
            self._remove(name)
            making, archive = self._folder / f"{MAKING}{name}", self._folder / f"{MAKING}{name}.tar.gz"
            try:
                _download(stored, archive)
                environment_archive.unpack(archive, making)
            except (environment_archive.WrongPlatform, tarfile.TarError, OSError) as error:
                raise NotRestored(f"the environment can't be restored on this host: {error}") from error
            finally:
                archive.unlink(missing_ok=True)
            making.rename(self.path(name))
            self._mark(name)
            tell("the environment is restored")

    def _check(self, making: Path, files: Files, tell: Tell) -> None:
        """See that the engine starts in it, and loads the configuration."""
        with folders.temporary_folder(self._folder.parent / "checks", making.name.removeprefix(MAKING)) as place:
            configurations.write_to(files, place)
            said: list[bytes] = []
            ended = process.execute(
                [install.python_of(making), "-I", "-m", "ade_engine", "check", "--config", place],
                folder=place,
                reads=[making],
                limits=self._limits,
                on_line=said.append,
            )
        if ended.code:
            raise BuildFailed(f"the configuration did not load: {_reason(said) or ended.reason or ended.code}")
        tell("the engine starts in it and loads the configuration")

    def _mark(self, name: str) -> None:
        """From here on it is used: what it says is on the disk before its mark is."""
        os.sync()
        with (self.path(name) / MARK).open("x") as file:
            file.write(f"{time.time():.0f}\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.path(name))
        sync_folder(self._folder)

    def _remove(self, name: str) -> None:
        (self.path(name) / MARK).unlink(missing_ok=True)
        folders.remove(self.path(name))
        folders.remove(self._folder / f"{MAKING}{name}")
        (self._folder / f"{MAKING}{name}.tar.gz").unlink(missing_ok=True)

    def _is_old(self, name: str, unused_for: timedelta) -> bool:
        """Whether no one has used it for so long; one that was left half-made is, at once."""
        try:
            return time.time() - (self.path(name) / MARK).stat().st_mtime >= unused_for.total_seconds()
        except FileNotFoundError:
            return True

    def _lock(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _download(stored: Callable[[], Artifact], target: Path) -> None:
    """Copy the archive to this host, checked by its checksum."""
    try:
        artifact, digest = stored(), hashlib.sha256()
        with artifact.open() as source, target.open("wb") as file:
            while block := source.read(BLOCK):
                digest.update(block)
                file.write(block)
    except (ArtifactNotFound, DepotUnavailable, RunNotFound) as error:
        raise EnvironmentLost(str(error)) from error
    if digest.hexdigest() != artifact.sha256:
        raise EnvironmentLost(f"{artifact.address} is not as it was written")


def _reason(said: list[bytes]) -> str | None:
    """What `check` says is wrong: the last line that it printed, as JSON."""
    try:
        told = json.loads(said[-1])
        return f"{told['message']} ({told['code']})"
    except (IndexError, ValueError, TypeError, KeyError):
        return None
