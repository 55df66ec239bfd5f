"""python -m system.end_with_parent FD GRACE MODULE …: runs a module and stops it when the parent process dies.

FD is the reading end of a pipe whose writing end only the parent has. Nothing is ever written to it, so reading it
returns only when the parent dies, even by `kill -9`. This process then gets SIGTERM. If it still runs after GRACE
seconds, its process group is killed.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def main() -> None:
    fd, grace, module = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    threading.Thread(target=_watch, args=(fd, grace), name="end_with_parent", daemon=True).start()
    sys.argv = sys.argv[3:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _watch(fd: int, grace: float) -> None:
    os.read(fd, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(grace)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
