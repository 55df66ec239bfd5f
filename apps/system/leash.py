"""python -m apps.system.leash FD GRACE MODULE …: runs a module, and ends it when whoever holds the leash is gone.

FD is the reading end of a pipe that no one writes to; its other end closes when its only holder dies, even of kill -9.
Then this process is asked to stop as by a person (SIGTERM); if it has not within GRACE seconds, its group is killed.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def main() -> None:
    fd, grace, module = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    threading.Thread(target=_hold, args=(fd, grace), name="leash", daemon=True).start()
    sys.argv = sys.argv[3:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _hold(fd: int, grace: float) -> None:
    os.read(fd, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(grace)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
