"""Launch: restricts this process, then replaces it by another program.

`process.py` starts it as a script with a bare interpreter: `launch.py OPTIONS PROGRAM …`. The process dies with its
parent and has limits on memory, time, files and processes. On Linux it may also read only the given folders, write only
to its working folder, use no network, and signal only itself and its descendants.
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
"""The access rights that apply to a file; the others apply only to folders."""

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    program = sys.argv[2:]
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != options["parent"]:
        os._exit(1)  # the parent has already died
    for name, value in options["limits"].items():
        _limit(getattr(resource, name), value)
    if options["confine"]:
        _confine(reads=options["reads"], writes=options["writes"])
    os.execv(program[0], program)


def abi() -> int:
    """Return the version of Landlock that the kernel supports; below 1 means none."""
    return int(libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)) if sys.platform == "linux" else 0


def _limit(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))


def _confine(*, reads: list[str], writes: list[str]) -> None:
    """Let this process access only these paths, by Landlock. A kernel without it enforces only the resource limits."""
    supported = abi()
    if supported < 1:
        return
    handled = FILES_OF_ABI[min(supported, 5)]
    rules = struct.pack("QQQ", handled, NETWORK if supported >= 4 else 0, SCOPES if supported >= 6 else 0)
    ruleset = _checked(libc.syscall(CREATE_RULESET, rules, 24 if supported >= 6 else 16 if supported >= 4 else 8, 0))
    for path in reads:
        _allow(ruleset, path, READ & handled)
    for path in writes:
        _allow(ruleset, path, handled)
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= ONE_FILE
    _checked(libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0))
    os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "Landlock could not confine this process")
    return result


if __name__ == "__main__":
    main()
