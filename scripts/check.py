"""What ./test runs: each check with its time, the first failure ends it. The types are checked beside the tests.

./test                everything but the long tests
./test --all          the long tests too, those of PostgreSQL once more on a server with other defaults, and those of
                      SQLite once more with its newest library
./test --fast         format, lint, types, layers and the tests that need no server: under a minute
./test ARGUMENTS      only pytest, with these arguments
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent

CHECKS = [
    ("format", ["ruff", "format", "--check", "--quiet", "."]),
    ("lint", ["ruff", "check", "--quiet", "."]),
    ("layers", ["lint-imports", "--no-cache"]),
]
TYPES = ("types", ["mypy"])
PYTEST = ["pytest", "-q"]
# More than there are cores: most of them wait for a lease, a process or a database.
ENGINE = ["-n", "4", "--dist", "worksteal", "tests", "--ignore", "tests/apps"]
# The tests of an application share its processes: a file stays with whoever has begun it.
APPLICATIONS = ["-n", "3", "--dist", "loadfile", "tests/apps"]
# The contracts hold on a server whose defaults are unlike ours, for a role with no more rights than it needs.
ODD_POSTGRES = ["-n", "4", "--dist", "worksteal", "--odd-postgres", "tests/contract", "tests/process"]
# The same as everyday tests do on the standard library's SQLite, which is older.
NEWEST_SQLITE = [
    "-n",
    "4",
    "--dist",
    "worksteal",
    "-k",
    "not postgres and not sqlserver",
    "tests/contract",
    "tests/process",
]
FAST = ["-n", "2", "--dist", "worksteal", "tests/unit", "tests/codebase", "tests/docs"]
# Hundreds of processes are started: without bytecode, each would compile the whole project anew.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            return _all({"tests": ENGINE, "applications": APPLICATIONS})
        case ["--all"]:
            return _all(
                {
                    "tests": [*ENGINE, "--long"],
                    "applications": [*APPLICATIONS, "--long"],
                    "tests on an odd PostgreSQL": ODD_POSTGRES,
                    "tests on the newest SQLite": NEWEST_SQLITE,
                },
                {"tests on the newest SQLite": {"HOLDFAST_SQLITE_MODULE": "pysqlite3"}},
            )
        case ["--fast"]:
            return _all({"tests": FAST})
        case given:
            return _step("tests", ["pytest", *given])


def _all(tests: dict[str, list[str]], environments: Mapping[str, dict[str, str]] | None = None) -> int:
    """Every check, then the tests; `environments` are variables that are set for some of them."""
    started = time.monotonic()
    for name, command in CHECKS:
        if code := _step(name, command):
            return code
    with ThreadPoolExecutor(1) as beside:
        types = beside.submit(_step, *TYPES, at_once=False)
        variables = environments or {}
        codes = [_step(name, [*PYTEST, *chosen], variables=variables.get(name)) for name, chosen in tests.items()]
        code = next((code for code in [*codes, types.result()] if code), 0)  # one that was killed is below nought
    if not code:
        print(f"all good in {time.monotonic() - started:.0f} s")
    return code


def _step(name: str, command: list[str], *, at_once: bool = True, variables: Mapping[str, str] | None = None) -> int:
    """Run it; unless its output is to be shown at once, it is shown in one piece at the end."""
    print(f"── {name}: {' '.join(command)}", flush=True)
    started = time.monotonic()
    done = subprocess.run(
        [BIN / command[0], *command[1:]],
        cwd=ROOT,
        env=ENVIRONMENT | dict(variables or {}),
        stdin=subprocess.DEVNULL,
        stdout=None if at_once else subprocess.PIPE,
        stderr=None if at_once else subprocess.STDOUT,
        text=True,
        check=False,
    )
    verdict = f"{name} {'passed' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - started:.1f} s"
    print(f"{done.stdout or ''}   {verdict}", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
