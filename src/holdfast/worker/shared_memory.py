"""Shared memory: a few numbers that the worker, its guardian and the supervisors of its runs share.

This file imports nothing of Holdfast, because the guardian and the supervisors load it as a plain file. All times are
seconds of CLOCK_BOOTTIME, which is the same in every process of the machine.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from typing import Any

AWAKE_AT, EXECUTING, SAFE_UNTIL, STOPPING, RENEWED_UNTIL, GUARDED_UNTIL = range(6)
"""The index of each number.

AWAKE_AT       when the worker's own code last ran
EXECUTING      the number of functions, in its threads and event loop, that a takeover could execute a second time
SAFE_UNTIL     until when nobody can take one of the worker's leases, as far as the worker knows
STOPPING       whether the worker is about to stop: 0 or 1
RENEWED_UNTIL  until when the guardian has renewed the leases
GUARDED_UNTIL  until when nobody can take one of the leases, as far as the guardian knows
"""


class SharedMemory:
    """The numbers, followed by the guardian's instructions.

    The numbers have their own page, so that the process of a run, which maps only that page, can't read the rest.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self._numbers = memoryview(mmap.mmap(file, mmap.PAGESIZE)).cast("d")

    @classmethod
    def create(cls, instructions: dict[str, Any]) -> SharedMemory:
        text = json.dumps(instructions).encode()
        file = os.memfd_create("holdfast-memory") if hasattr(os, "memfd_create") else _temporary_file()
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
        """The time until which nobody can take a lease, as far as the worker or its guardian knows."""
        return max(self[SAFE_UNTIL], self[GUARDED_UNTIL])


def _temporary_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
