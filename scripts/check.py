"""Runs the checks and tests of `./test`, and shows how long each took. It stops at the first failed check.

Mypy runs at the same time as the tests, and all tests run even if some fail.

./test                everything except the long tests
./test --all          also the long tests, the PostgreSQL tests again on a server with unusual defaults, and the SQLite
                      tests again with the newest SQLite library
./test --fast         format, lint, types, layers and the tests in tests/unit, tests/codebase and tests/docs; takes
                      under a minute
./test ARGUMENTS      only pytest, with these arguments
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
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
# More processes than cores, because most tests wait for a lease, a process or a database.
ENGINE = ["-n", "4", "--dist", "worksteal", "tests"]
# The tests in one file of an application share its processes, so a file is not split.
APPLICATIONS = ["-n", "3", "--dist", "loadfile", "apps"]
# The promises also hold on a server with unusual defaults, for a role with minimal rights.
ODD_POSTGRES = ["-n", "4", "--dist", "worksteal", "--odd-postgres", "tests/contract", "tests/process"]
# The everyday tests use the SQLite of the standard library, which is older.
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
# The tests start hundreds of processes. Without bytecode, each would compile the whole project again.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
TYPES_CACHE = ROOT / ".mypy_cache"
# A copy of mypy's cache for other clones. Mypy compares the content of files, so a new clone checks only what differs.
SHARED_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast" / "mypy"
LONG = 10.0  # seconds; if mypy took longer, the shared cache is updated


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
    """Run every check, then the tests. `environments` holds variables to set for some of the tests."""
    started = time.monotonic()
    for name, command in CHECKS:
        if code := _step(name, command):
            return code
    if not _is_compiled():
        folders = [word for chosen in tests.values() for word in chosen if word.split("/")[0] in ("tests", "apps")]
        # Compile the tests once, so that the test processes don't each do it.
        if code := _step("compile", [*PYTEST, "--collect-only", *dict.fromkeys(folders)], at_once=False, silent=True):
            return code
    with ThreadPoolExecutor(1) as background:
        types = background.submit(_types)
        variables = environments or {}
        codes = [_step(name, [*PYTEST, *chosen], variables=variables.get(name)) for name, chosen in tests.items()]
        code = next((code for code in [*codes, types.result()] if code), 0)  # negative if a signal killed it
    if not code:
        print(f"all checks passed in {time.monotonic() - started:.0f} s")
    return code


def _types() -> int:
    """Run mypy. A new clone starts with the cache of another one."""
    if not TYPES_CACHE.exists() and SHARED_CACHE.exists():
        shutil.copytree(SHARED_CACHE, TYPES_CACHE)
    started = time.monotonic()
    code = _step(*TYPES, at_once=False)
    if code == 0 and time.monotonic() - started > LONG:
        SHARED_CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=SHARED_CACHE.parent) as folder:
            new = Path(shutil.copytree(TYPES_CACHE, Path(folder) / "new"))
            with contextlib.suppress(OSError):  # another ./test may do the same
                if SHARED_CACHE.exists():
                    SHARED_CACHE.rename(Path(folder) / "old")
                new.rename(SHARED_CACHE)
    return code


def _is_compiled() -> bool:
    """Return whether pytest has compiled most of the tests in their current state."""
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("apps/*/tests/**/test_*.py")]
    compiled = {
        (file.parent.parent, file.name.partition(".")[0]): file.stat().st_mtime
        for folder in ("tests", "apps")
        for file in ROOT.glob(f"{folder}/**/__pycache__/test_*-pytest-*.pyc")
    }
    stale = [file for file in files if compiled.get((file.parent, file.stem), 0) < file.stat().st_mtime]
    return len(stale) < len(files) / 4


def _step(
    name: str,
    command: list[str],
    *,
    at_once: bool = True,
    silent: bool = False,
    variables: Mapping[str, str] | None = None,
) -> int:
    """Run a command. With `at_once=False` its output is shown at the end; with `silent` too, only if it fails."""
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
    shown = "" if silent and done.returncode == 0 else done.stdout or ""
    print(f"{shown}   {verdict}", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
