"""Shared memory: a few numbers that the worker, its guardian and the supervisors of its runs share in memory.

It imports nothing of ours, because the guardian and the supervisors load it as a plain file. All times are seconds of
CLOCK_BOOTTIME, which every process of the machine reads alike.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from typing import Any

AWAKE_AT, EXECUTING, SAFE_UNTIL, STOPPING, RENEWED_UNTIL, GUARDED_UNTIL = range(6)
"""Where each number stands.

AWAKE_AT       when the worker last ran code of its own
EXECUTING      how many functions in its threads and its event loop could run beside another attempt
SAFE_UNTIL     until when nobody can have taken a lease of the worker away, as far as the worker knows
STOPPING       whether the worker is about to end: 0 or 1
RENEWED_UNTIL  until when the guardian has renewed the leases
GUARDED_UNTIL  until when nobody can have taken a lease away, as far as the guardian knows
"""


class SharedMemory:
    """The numbers, and the guardian's instructions behind them.

    The numbers have a page of memory to themselves: a run's process, which inherits it, can't read the instructions.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self._numbers = memoryview(mmap.mmap(file, mmap.PAGESIZE)).cast("d")

    @classmethod
    def create(cls, instructions: dict[str, Any]) -> SharedMemory:
        text = json.dumps(instructions).encode()
        file = os.memfd_create("holdfast-board") if hasattr(os, "memfd_create") else _temporary_file()
        os.write(file, bytes(mmap.PAGESIZE) + text)
        return cls(file)

    @property
    def instructions(self) -> dict[str, Any]:
        size = os.fstat(self.file).st_size
        return json.loads(os.pread(self.file, size, mmap.PAGESIZE))  # type: ignore[no-any-return]

    def __getitem__(self, number: int) -> float:
        return self._numbers[number]

    def __setitem__(self, number: int, value: float) -> None:
        self._numbers[number] = value

    @property
    def safe_until(self) -> float:
        """Until when nobody can have taken a lease away, by whatever the worker or its guardian knows."""
        return max(self[SAFE_UNTIL], self[GUARDED_UNTIL])


def _temporary_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
