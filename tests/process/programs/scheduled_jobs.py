"""A schedule with a slot every second, shared by several processes; each of its runs writes a line to a file."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from holdfast import Holdfast

hf = Holdfast(poll_interval=0.5, lease=2, kill_grace=0.2)


@hf.schedule(every=1, coalesce=False, overlap="wait", name="beat")
def beat(scheduled_for: datetime) -> None:
    with open(Path(os.environ["TEST_MARKS"]) / "slots.txt", "a") as file:
        file.write(f"{scheduled_for.isoformat()} {os.getpid()}\n")
