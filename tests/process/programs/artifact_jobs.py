"""Jobs that create artifacts slowly, for tests that kill their worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from holdfast import Context, Holdfast, LeaseLost

hf = Holdfast(poll_interval=0.05, lease=2, kill_grace=0.5)


@hf.job(timeout=60)
def film(ctx: Context, folder: Path, frames: int) -> int:
    """The first attempt waits in the middle of its third frame until the file `go` exists."""

    def write_frame(path: Path, number: int) -> None:
        with open(folder / "frames.txt", "a") as file:
            file.write(f"{number} {os.getpid()}\n")
        path.write_bytes(b"%d" % number * 1000)
        if number == 2 and ctx.run.claim == 1:
            (folder / "stuck").touch()
            give_up_at = time.monotonic() + 60
            while not (folder / "go").exists() and time.monotonic() < give_up_at:
                time.sleep(0.02)

    try:
        return sum(_frame(ctx, number, write_frame) for number in range(frames))
    except LeaseLost:
        (folder / "refused").touch()
        raise


def _frame(ctx: Context, number: int, write_frame: Callable[[Path, int], None]) -> int:
    return ctx.artifact(f"frame-{number}.bin", lambda path: write_frame(path, number)).size
