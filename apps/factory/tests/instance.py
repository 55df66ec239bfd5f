"""An instance of the factory for tests, with its own database and folders; work runs in this process or in workers."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, Self

import imageio_ffmpeg
from sqlalchemy import text
from tests.process.support import state_of, wait_for
from tests.python_process import PythonProcess

from holdfast import Holdfast, Run
from holdfast.testing import Manual

FORMAT: dict[str, Any] = {"width": 320, "height": 180, "fps": 10, "voice": "en-us", "pace": 240}
TINY: dict[str, Any] = {"width": 160, "height": 90, "fps": 5, "voice": "en-us", "pace": 380}
SCRIPT = """# Tides

The sea rises twice a day.

## The moon

The moon pulls the water.

- High tide
- Low tide

## The code

It is easy to say.

```python
tide = moon + sun
```

## The end

Then it falls again.
"""
SCENES = 4

# A wrapper of ffmpeg: records each call, then runs ffmpeg, or fails or hangs if a test asks for it.
FFMPEG = """#!/bin/sh
case "$*" in *-version*) exec {real} "$@" ;; esac
echo "$$ $*" >> {folder}/calls
if mv {folder}/fail {folder}/failed 2>/dev/null; then echo "a failure for the test" >&2; exit 1; fi
if [ -e {folder}/hang ]; then
    case "$*" in *"$(cat {folder}/hang)"*) sleep 600 & echo "$$ $!" >> {folder}/hung; wait ;; esac
fi
exec {real} "$@"
"""


class FactoryInstance:
    """The factory's modules, imported for one database, and processes that work on it."""

    def __init__(self, url: str, folder: Path, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.url, self.folder = url, folder
        self.output, self.artifacts = folder / "output", folder / "artifacts"
        self.environment = {
            "HOLDFAST_URL": url,
            "HOLDFAST_ARTIFACTS": str(self.artifacts),
            "HOLDFAST_LEASE": "2",
            "HOLDFAST_POLL_INTERVAL": "0.05",
            "HOLDFAST_KILL_GRACE": "0.2",
            "FACTORY_OUTPUT": str(self.output),
            "FACTORY_RETRY_DELAY": "0.2",
            "IMAGEIO_FFMPEG_EXE": str(self._wrapped()),
            **environment,
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        self._before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        forget()
        self.jobs = importlib.import_module("apps.factory.jobs")
        self.videos = importlib.import_module("apps.factory.videos")
        self.formats = importlib.import_module("apps.factory.formats")
        self.hf: Holdfast = self.jobs.hf
        self.tables = importlib.import_module("apps.factory.tables")
        self.tables.prepare()

    def create(self, script: str = SCRIPT, **video_format: Any) -> Any:
        return self.videos.create(script, self.formats.Format(**(FORMAT | video_format)))

    def edit(self, edition: Any, script: str) -> Any:
        return self.videos.edit(edition.video_id, script)

    def done(self, edition: Any, *, within: float = 90) -> dict[str, Any]:
        """Wait until an edition is published, and return its manifest."""
        manifest: dict[str, Any] = self.hf.get(edition.run_id).result(timeout=within)
        return manifest

    @cached_property
    def manual(self) -> Manual:
        return Manual(self.hf)

    def make(self, edition: Any) -> dict[str, Any]:
        """Execute all stages in this thread, and return the manifest."""
        self.manual.run_all()
        return self.done(edition, within=1)

    def repeat(self, edition: Any, *, from_stage: str = "script") -> Run[Any]:
        """Run an edition's pipeline again through Holdfast; the factory itself does not offer this."""
        with Holdfast(self.url, artifacts=self.artifacts) as other:
            other.pipeline("factory.video")
            again = other.pipelines.rerun(edition.run_id, from_stage=from_stage)
        self.manual.run_all()
        return self.hf.get(again.id)

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        command = ("worker", "apps.factory.jobs:hf", "-q", "factory", "-c", "1", *options)
        return self.start("holdfast", *command)

    def orchestrator(self) -> subprocess.Popen[bytes]:
        return self.start("holdfast", "orchestrator", "apps.factory.jobs:hf")

    def start(self, module: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"process-{len(self.processes)}.log", "ab") as log:
            started = PythonProcess(
                [sys.executable, "-m", module, *arguments],
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.processes.append(started)
        return started

    def freeze(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGSTOP between two writes, because a process stopped during a write would keep SQLite's write lock."""
        with self.tables.database().write():
            process.send_signal(signal.SIGSTOP)
            wait_for(lambda: state_of(process.pid) == "T", "the process is stopped")

    def result(self, edition: Any, stage: str) -> Any:
        [shown] = [one for one in self.hf.pipelines.show(edition.run_id).stages if one.name == stage]
        if not shown.split:
            return self.hf.get(shown.run_id).result(timeout=1)
        segments = self.hf.pipelines.segments(edition.run_id, stage)
        return [self.hf.get(segment.run_id).result(timeout=1) for segment in segments]

    def made(self, edition: Any) -> dict[str, list[bool] | bool]:
        """Return which segments of each stage were made for this edition; the others were reused."""
        split = {stage: [one["made"] for one in self.result(edition, stage)] for stage in ("audio", "visuals")}
        return {**split, "render": self.result(edition, "render")["made"]}

    def rows(self, query: str, **values: Any) -> list[Mapping[str, Any]]:
        with self.tables.database().read() as session:
            return list(session.execute(text(query), values).mappings())

    def times(self) -> dict[str, list[int]]:
        """Return how often each product was made, by stage."""
        times: dict[str, list[int]] = {}
        for row in self.rows("select stage, times from products order by stage, key"):
            times.setdefault(row["stage"], []).append(row["times"])
        return times

    def calls(self, about: str = "") -> list[tuple[int, str]]:
        """Return the process id and the arguments of every ffmpeg that was started."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(int(line.partition(" ")[0]), line.partition(" ")[2]) for line in lines if about in line]

    def hung(self) -> list[list[int]]:
        """Return the process ids of every ffmpeg that hangs, with its child."""
        file = self.folder / "hung"
        return [[int(pid) for pid in line.split()] for line in file.read_text().splitlines()] if file.exists() else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for one in self.processes:
            for number in (signal.SIGKILL, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError):
                    one.send_signal(number)
            one.wait(timeout=60)
        self.hf.close()
        self.tables.database().close()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        forget()

    def _wrapped(self) -> Path:
        os.environ.pop("IMAGEIO_FFMPEG_EXE", None)
        program = self.folder / "ffmpeg"
        program.write_text(FFMPEG.format(real=quote(imageio_ffmpeg.get_ffmpeg_exe()), folder=quote(str(self.folder))))
        program.chmod(0o755)
        return program


def forget() -> None:
    """Unload the factory's modules, which read their settings on import, so that the next import reads them again."""
    for name in [name for name in sys.modules if name.startswith("apps.factory")]:
        del sys.modules[name]
