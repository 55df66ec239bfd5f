"""What ./test runs: each check with its time, the first failure ends it.

./test                everything but the long tests
./test --all          the long tests too
./test --fast         format, lint, types, layers and the tests that need no server: under a minute
./test ARGUMENTS      only pytest, with these arguments
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent

CHECKS = [
    ("format", ["ruff", "format", "--check", "--quiet", "."]),
    ("lint", ["ruff", "check", "--quiet", "."]),
    ("types", ["mypy"]),
    ("layers", ["lint-imports", "--no-cache"]),
]
PYTEST = ["pytest", "-q", "-n", "2", "--dist", "worksteal"]
FAST = ["tests/unit", "tests/tidy", "tests/docs"]


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            steps = [*CHECKS, ("tests", PYTEST)]
        case ["--all"]:
            steps = [*CHECKS, ("tests", [*PYTEST, "--long"])]
        case ["--fast"]:
            steps = [*CHECKS, ("tests", [*PYTEST, *FAST])]
        case given:
            steps = [("tests", ["pytest", *given])]
    started = time.monotonic()
    for name, command in steps:
        if code := _step(name, command):
            return code
    print(f"all good in {time.monotonic() - started:.0f} s")
    return 0


def _step(name: str, command: list[str]) -> int:
    print(f"── {name}: {' '.join(command)}", flush=True)
    started = time.monotonic()
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
    print(
        f"   {name} {'passed' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - started:.1f} s",
        flush=True,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
