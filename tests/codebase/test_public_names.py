"""The public names: each is imported on first use, and type checkers see the same names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import holdfast


def test_type_checkers_see_the_names_that_are_imported_on_first_use() -> None:
    tree = ast.parse(Path(holdfast.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: (node.module or "").removeprefix("holdfast.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == holdfast._MODULES
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    assert not hasattr(holdfast, "nothing")


def test_declaring_jobs_loads_neither_the_worker_nor_the_web_side() -> None:
    program = """
import sys
from holdfast import Holdfast
hf = Holdfast("sqlite:///never.db")

@hf.job()
def work(name: str) -> str:
    return name

heavy = ("holdfast.worker.worker", "holdfast.orchestrator", "holdfast.web", "holdfast.runs.submit", "asyncio")
print([name for name in sys.modules if name.startswith(heavy)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"
