"""Each process of an isolated run imports the program, which must not submit or start anything then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests import python_process
from tests.docs.pages import ROOT, script
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.values.runs import Snapshot

GUARD = 'if __name__ == "__main__":'
PROGRAM = script(ROOT / "README.md").replace("max_attempts=3", 'max_attempts=3, isolation="process"')


def run(folder: Path, program: str) -> tuple[subprocess.CompletedProcess[str], list[Snapshot]]:
    """Run a program in a folder; return the completed process and the runs in its database."""
    (folder / "app.py").write_text(program)
    done = python_process.run([sys.executable, "app.py"], cwd=folder, timeout=120)
    with Holdfast(f"sqlite:///{folder}/work.db") as hf:
        return done, runs_of(hf)


def unguarded(program: str) -> str:
    """The program without its guard, with unchanged line numbers."""
    above, below = program.split(GUARD)
    return above + "#" + below.replace("\n    ", "\n")


@pytest.mark.contract("S4")
def test_the_first_program_runs_its_job_in_a_process(tmp_path: Path) -> None:
    done, [made] = run(tmp_path, PROGRAM)

    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
    assert made.state == "succeeded"


@pytest.mark.contract("S4")
def test_the_first_program_without_its_main_guard_fails_with_advice(tmp_path: Path) -> None:
    program = unguarded(PROGRAM)
    line = next(number for number, text in enumerate(program.splitlines(), 1) if text.startswith("run = index.submit"))

    done, [made] = run(tmp_path, program)

    assert (made.state, made.failure_type, made.attempt) == ("failed", "JOB_NOT_LOADED", 1)
    assert made.error == (
        f"the process could not load job app.index: {tmp_path}/app.py line {line} submits app.index while a run's own "
        f"process imports it; put this below: {GUARD}"
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"put this below: {GUARD}")


WAYS = {
    "submit": "work.submit()",
    "submit by name": "hf.submit('work')",
    "submit many": "work.submit_many([{}])",
    "asubmit": "asyncio.run(work.asubmit())",
    "asubmit many": "asyncio.run(work.asubmit_many([{}]))",
    "in a thread": "ThreadPoolExecutor().submit(work.submit).result()",
    "a worker": "hf.worker().start()",
    "a call": "work()",
}


@pytest.mark.parametrize("way", WAYS)
def test_while_a_process_imports_a_program_no_run_is_created_and_no_job_runs(tmp_path: Path, way: str) -> None:
    done, [made] = run(
        tmp_path,
        f"""
import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from holdfast import Holdfast

hf = Holdfast("sqlite:///{tmp_path}/work.db")

@hf.job(name="work")
def work() -> None: ...

@hf.job(name="isolated", isolation="process")
def isolated() -> None:
    Path("executed").touch()

if __name__ == "__main__":
    run = isolated.submit()
    with hf.worker(drain=True) as worker:
        worker.join(timeout=60)
else:
    {WAYS[way]}
""",
    )

    assert done.returncode == 0, done.stderr
    assert (made.job, made.state, made.failure_type) == ("isolated", "failed", "JOB_NOT_LOADED")
    assert str(made.error).endswith(f"while a run's own process imports it; put this below: {GUARD}")
    assert not (tmp_path / "executed").exists()
