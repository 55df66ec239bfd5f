"""Reading on this machine: a PDF is read in a process of its own, with limits, which ends with whoever asked.

A PDF library reads what strangers have made: one that crashes, loops or eats memory takes no one else along.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from apps.extraction.providers import Analysis, Cell, Page, Pair, Table, Trouble, Unfinished, Unreadable

REFUSED = 3  # the exit code with which the reader says that the document is the reason


class LocalDocuments:
    """`timeout` is for a whole document, `most_pages` and `most_characters` are what is read of one."""

    name = "reader"

    def __init__(self, *, timeout: float, most_pages: int, most_characters: int) -> None:
        self._timeout, self._limits = timeout, (str(most_pages), str(most_characters))

    def start(self, document: bytes) -> str:
        return ""  # nothing is begun before it is read

    def result(self, place: str, document: bytes) -> Analysis | Unfinished:
        command = [sys.executable, "-m", "apps.extraction.reader", f"{self._timeout:g}", *self._limits]
        try:
            done = subprocess.run(command, input=document, capture_output=True, timeout=self._timeout, check=False)
        except subprocess.TimeoutExpired:
            raise Unreadable("TOO_SLOW", f"it could not be read within {self._timeout:g} s") from None
        if done.returncode == REFUSED:
            told = json.loads(done.stdout)
            raise Unreadable(told["reason"], told["said"])
        if done.returncode < 0:
            raise Unreadable("UNREADABLE", f"what reads it was ended by signal {-done.returncode}")
        if done.returncode != 0:
            raise Trouble(self.name, done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:][0][:300])
        return analysis_of(json.loads(done.stdout))


def analysis_of(told: dict[str, Any]) -> Analysis:
    """An analysis, from what `as_json` made of one."""
    return Analysis(
        pages=[Page(**page) for page in told["pages"]],
        tables=[Table(**table | {"cells": [Cell(**cell) for cell in table["cells"]]}) for table in told["tables"]],
        pairs=[Pair(**pair) for pair in told["pairs"]],
    )
