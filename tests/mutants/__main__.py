"""Break each promise on purpose, and check that a test fails.

make mutants                             continue where the last call stopped, for at most an hour
python -m tests.mutants P2 J7            only the breaks of these promises
python -m tests.mutants --minutes 20 --jobs 1
python -m tests.mutants --again          try all breaks again, whatever their verdicts were

A break is applied to a copy of the project; then the tests that name the promise run until one of them fails. Each
verdict is kept in `.mutants/` until one of these changes: the break, its file, or the file of the test that failed. The
result of a complete round is written to `docs/contracts.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from scripts import contracts
from tests.mutants.breaks import ROOT, Break, breaks

KEPT = ROOT / ".mutants"
STATE = KEPT / "state.json"
COPIED = ("src", "apps", "system", "packages", "tests", "docs", "scripts", "bench", "examples")
PATIENCE = 900.0  # seconds for the tests of one break; tests that hang count as failed
PYTEST = ["pytest", "-q", "-x", "-n", "0", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """The result of a break: `killed` by a test, `survived`, or `invalid` if no test could run."""

    state: str
    by: str
    seconds: float
    on: str
    digest: str
    """Covers the break, its file, and the file of the failed test (if none failed, all files that name the promise)."""

    def is_current(self, one: Break, tests: list[str]) -> bool:
        return self.digest == one.digest(_deciding_files(self.state, self.by, tests))


def _deciding_files(state: str, by: str, tests: list[str]) -> list[str]:
    return [by.partition("::")[0]] if state == "killed" and "::" in by else tests


class Known:
    """The verdicts of earlier calls, kept in a file."""

    def __init__(self, *, again: bool) -> None:
        self._lock = threading.Lock()
        found = json.loads(STATE.read_text("utf-8")) if STATE.exists() and not again else {}
        self._verdicts = {key: Verdict(**value) for key, value in found.items()}

    def get(self, one: Break, tests: list[str]) -> Verdict | None:
        found = self._verdicts.get(repr(one))
        return found if found is not None and found.is_current(one, tests) else None

    def put(self, one: Break, verdict: Verdict) -> None:
        with self._lock:
            self._verdicts[repr(one)] = verdict
            new = STATE.with_suffix(".new")
            new.write_text(json.dumps({key: asdict(kept) for key, kept in self._verdicts.items()}, indent=1), "utf-8")
            new.replace(STATE)


class Copy:
    """A copy of the project, to which one break at a time is applied."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._changes = folder, int(time.time())
        shutil.rmtree(folder, ignore_errors=True)
        for entry in ROOT.iterdir():
            if entry.name in COPIED:
                shutil.copytree(entry, folder / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
            elif entry.is_file():
                shutil.copy2(entry, folder / entry.name)

    def try_break(self, one: Break, tests: list[str]) -> Verdict:
        file = self._folder / one.file
        text = file.read_text("utf-8")
        started = time.monotonic()
        self._write(file, one.broken(text))
        try:
            code, output = self._run(one, tests)
        finally:
            self._write(file, text)
        found = FAILED.search(output)
        if code == 1 and found is not None:
            state, by = "killed", found[1]
        elif code is None:
            state, by = "killed", f"the tests took longer than {PATIENCE:g} s"
        else:
            state, by = ("survived", "") if code == 0 else ("invalid", output[-2000:])
        digest = one.digest(_deciding_files(state, by, tests), root=self._folder)
        return Verdict(state, by, round(time.monotonic() - started, 1), f"{datetime.now(UTC):%Y-%m-%d}", digest)

    def _write(self, file: Path, text: str) -> None:
        """Write with a new time: Python detects stale bytecode only by the source's size and its time in seconds."""
        file.write_text(text, "utf-8")
        self._changes += 1
        os.utime(file, (self._changes, self._changes))

    def _run(self, one: Break, tests: list[str]) -> tuple[int | None, str]:
        """Run the tests; return the exit code of pytest, or None if it took too long, and its output."""
        process = subprocess.Popen(
            [sys.executable, "-m", *PYTEST, "--promise", one.promise, *tests],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": f"{self._folder / 'src'}:{self._folder}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # so that the fixtures stop their servers
            try:
                output, _ = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
            return None, output
        return process.returncode, output


def main() -> int:
    given = _arguments()
    KEPT.mkdir(exist_ok=True)
    known, proofs = Known(again=given.again), contracts.proofs()
    chosen = [one for one in breaks() if not given.promises or one.promise in given.promises]
    tests = {one: one.tests(proofs) for one in chosen}
    verdicts = {one: known.get(one, tests[one]) for one in chosen}
    left = [one for one in chosen if verdicts[one] is None]
    print(f"{len(chosen)} breaks, {len(chosen) - len(left)} tried before", flush=True)
    give_up_at = time.monotonic() + given.minutes * 60
    copies: SimpleQueue[Copy] = SimpleQueue()
    for number in range(given.jobs if left else 0):
        copies.put(Copy(KEPT / f"copy-{number}"))

    def attempt(one: Break) -> None:
        if time.monotonic() > give_up_at:
            return
        copy = copies.get()
        try:
            verdict = copy.try_break(one, tests[one])
        finally:
            copies.put(copy)
        verdicts[one] = verdict
        if verdict.state != "invalid":  # try it again next time: perhaps only a server did not start
            known.put(one, verdict)
        print(
            f"{verdict.state:8} {verdict.seconds:6.1f} s  {one}  {verdict.by if verdict.state == 'killed' else ''}",
            flush=True,
        )

    with ThreadPoolExecutor(given.jobs) as threads:
        list(threads.map(attempt, left))
    return _report(chosen, verdicts, whole=not given.promises)


def _report(chosen: list[Break], verdicts: dict[Break, Verdict | None], *, whole: bool) -> int:
    by_state: dict[str, list[Break]] = {"killed": [], "survived": [], "invalid": [], "left": []}
    for one in chosen:
        verdict = verdicts[one]
        by_state["left" if verdict is None else verdict.state].append(one)
    for state in ("survived", "invalid"):
        for one in by_state[state]:
            print(f"{state}: {one}")
    print(", ".join(f"{len(found)} {state}" for state, found in by_state.items()))
    if by_state["left"]:
        print("not all breaks were tried; run the command again")
        return 1
    if whole:
        contracts.note_mutants(
            on=max(verdict.on for verdict in verdicts.values() if verdict is not None),
            breaks=len(chosen),
            survivors=[str(one) for one in by_state["survived"] + by_state["invalid"]],
        )
    return int(bool(by_state["survived"] or by_state["invalid"]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("promises", nargs="*", help="numbers of promises; default: all")
    parser.add_argument("--minutes", type=float, default=55, help="start no break after this many minutes")
    parser.add_argument("--jobs", type=int, default=2, help="how many breaks to try at once")
    parser.add_argument("--again", action="store_true", help="try all breaks again, whatever their verdicts were")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
