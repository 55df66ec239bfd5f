"""`submit` has the parameter types of the function: mypy reports a wrong argument."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from holdfast import Context, Holdfast

hf = Holdfast("sqlite:///types.db")

@hf.job()
def index(ctx: Context, document: str, pages: int = 1) -> int:
    return pages

@hf.job()
async def fetch(url: str) -> bytes:
    return b""

@hf.build()
def environment(ctx: Context, configuration_id: str, fingerprint: str) -> str:
    return ""

def right() -> None:
    index.using(depends_on=[environment.using(priority=1).request("c1", fingerprint="f")]).submit("a")
    place: str = environment.submit("c1", "f").result()
    count: int = index.submit("a", pages=2).result()
    body: bytes = fetch.submit(url="x").result()

def wrong() -> None:
    index.submit(document=5)
    index.submit()
    fetch.submit(uri="x")
    environment.request("c1")
"""


def test_a_wrong_argument_is_an_error_of_mypy(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, check=False)
    first = PROGRAM.splitlines().index("def wrong() -> None:") + 1
    found = sorted({int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line})
    assert found == [first + 1, first + 2, first + 3, first + 4], done.stdout
