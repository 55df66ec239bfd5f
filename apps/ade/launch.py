"""Launch: becomes another program, after it has given up what that program must not have.

Started as a script by `process.py`, with Python's bare interpreter and nothing of ours: `launch.py LIMITS PROGRAM …`.
It dies with whoever started it, has bounds on memory, time, files and processes, and on Linux may read the program's
own folders, write its working folder, reach no network and signal no one outside.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import Any

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
FILES_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
NETWORK, SCOPES = 0b11, 0b11
READ = EXECUTE | READ_FILE | READ_DIR
ONE_FILE = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
"""What may be said of something that is no folder."""

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    told: dict[str, Any] = json.loads(sys.argv[1])
    program = sys.argv[2:]
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != told["parent"]:
        os._exit(1)  # it has died already
    for name, most in told["limits"].items():
        _limit(getattr(resource, name), most)
    if told["confine"]:
        _confine(reads=told["reads"], writes=told["writes"])
    os.execv(program[0], program)


def abi() -> int:
    """How much of Landlock the system knows; none below one."""
    return int(libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)) if sys.platform == "linux" else 0


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def _confine(*, reads: list[str], writes: list[str]) -> None:
    """Landlock: from here on only these can be reached. Where the system does not know it, the bounds above must do."""
    known = abi()
    if known < 1:
        return
    handled = FILES_OF_ABI[min(known, 5)]
    rules = struct.pack("QQQ", handled, NETWORK if known >= 4 else 0, SCOPES if known >= 6 else 0)
    ruleset = _asked(libc.syscall(CREATE_RULESET, rules, 24 if known >= 6 else 16 if known >= 4 else 8, 0))
    for path in reads:
        _allow(ruleset, path, READ & handled)
    for path in writes:
        _allow(ruleset, path, handled)
    _asked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _asked(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= ONE_FILE
    _asked(libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0))
    os.close(descriptor)


def _asked(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), "this process could not be confined")
    return answer


if __name__ == "__main__":
    main()
