"""Local documents: read a PDF on this machine, in a child process with limits, which ends when its parent does.

PDFs are untrusted. If a PDF makes the library crash, loop or fill the memory, only the child process is affected. If a
PDF takes control of the process, it finds none of our keys in the environment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from apps.extraction.analysis import Analysis, Unreadable
from apps.extraction.clean_text import plain
from apps.extraction.providers import ServiceError, Source, Unfinished

REFUSED = 3  # the exit code of the reader if the document is unreadable
ROOT = Path(__file__).parents[3]
INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")


class LocalDocuments:
    """Reads PDFs in a child process; the timeout and the limits apply to one document."""

    name = "reader"

    def __init__(self, *, timeout: float, most_pages: int, most_characters: int) -> None:
        self._timeout, self._limits = timeout, (str(most_pages), str(most_characters))

    def start(self, document: Source) -> str:
        return ""  # `result` does all the work

    def result(self, operation: str, document: Source) -> Analysis | Unfinished:
        child = self._read(document())
        if child.returncode == REFUSED:
            refusal = json.loads(child.stdout)
            raise Unreadable(refusal["failure_type"], refusal["message"])
        if child.returncode == -signal.SIGXCPU:
            raise self._too_slow()
        if child.returncode == -signal.SIGKILL:
            raise ServiceError(self.name, "the process was killed; the machine may have too little memory")
        if child.returncode < 0:
            crash = signal.Signals(-child.returncode).name
            raise Unreadable("UNREADABLE", f"the document made the reader crash ({crash})")
        if child.returncode != 0:
            lines = child.stderr.decode("utf-8", "replace").strip().splitlines()
            raise ServiceError(self.name, plain(lines[-1], 300) if lines else f"exit code {child.returncode}")
        return Analysis.from_json(child.stdout)

    def _read(self, document: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "apps.extraction.read_pdf", f"{self._timeout:g}", *self._limits]
        environment = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
        try:
            return subprocess.run(
                command,
                input=document,
                capture_output=True,
                timeout=self._timeout,
                check=False,
                cwd=ROOT,
                env=environment | {"PYTHONPATH": str(ROOT)},
            )
        except subprocess.TimeoutExpired:
            raise self._too_slow() from None
        except OSError as error:
            raise ServiceError(self.name, f"the process could not be started: {error.strerror}") from error

    def _too_slow(self) -> Unreadable:
        return Unreadable("TOO_SLOW", f"the document could not be read within {self._timeout:g} s")
