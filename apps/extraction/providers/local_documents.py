"""Local documents: read a PDF on this machine, in a child process with limits that ends when its parent does.

PDFs come from strangers. One that makes the library crash, loop or fill the memory harms only that process, and one
that takes control of it finds none of our keys in its environment.
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
from apps.extraction.providers import Source, Trouble, Unfinished

REFUSED = 3  # the exit code with which the reader says that the document is the reason
ROOT = Path(__file__).parents[3]
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "VIRTUAL_ENV")


class LocalDocuments:
    """`timeout` is for a whole document, `most_pages` and `most_characters` are what is read of one."""

    name = "reader"

    def __init__(self, *, timeout: float, most_pages: int, most_characters: int) -> None:
        self._timeout, self._limits = timeout, (str(most_pages), str(most_characters))

    def start(self, document: Source) -> str:
        return ""  # nothing is begun before it is read

    def result(self, place: str, document: Source) -> Analysis | Unfinished:
        done = self._read(document())
        if done.returncode == REFUSED:
            told = json.loads(done.stdout)
            raise Unreadable(told["reason"], told["said"])
        if done.returncode == -signal.SIGXCPU:
            raise self._too_slow()
        if done.returncode == -signal.SIGKILL:
            raise Trouble(self.name, "it was killed; the machine may have too little memory")
        if done.returncode < 0:
            raise Unreadable("UNREADABLE", f"what reads it crashed ({signal.Signals(-done.returncode).name})")
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Trouble(self.name, plain(said[-1], 300) if said else f"it ended with code {done.returncode}")
        return Analysis.from_json(done.stdout)

    def _read(self, document: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "apps.extraction.read_pdf", f"{self._timeout:g}", *self._limits]
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
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
            raise Trouble(self.name, f"it could not be started: {error.strerror}") from error

    def _too_slow(self) -> Unreadable:
        return Unreadable("TOO_SLOW", f"it could not be read within {self._timeout:g} s")
