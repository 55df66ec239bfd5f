"""Jobs write marks, one line each, to a file outside the database; `tests.process.support.marks` reads them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast import Context


def mark(what: str, ctx: Context) -> None:
    """Append one line with a single write: several processes append to the same file."""
    line = f"{time.clock_gettime(time.CLOCK_BOOTTIME)} {what} {ctx.run.id} {ctx.run.claim} {os.getpid()}\n"
    descriptor = os.open(Path(os.environ["TEST_MARKS"]) / "marks.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)
