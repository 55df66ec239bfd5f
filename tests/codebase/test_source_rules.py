"""Rules for the engine's source code that ruff can't check."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
import holdfast.testing

SRC = Path(holdfast.__file__).parent
KNOWS_DIALECTS = ("store/",)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(SRC.rglob("*.py")):
        yield str(file.relative_to(SRC)), ast.parse(file.read_text("utf-8"))


def test_nothing_uses_the_threads_of_the_event_loop() -> None:
    found = [
        f"{module}:{node.lineno}"
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "run_in_executor"
    ]
    assert found == [], "use holdfast.support.threads"


def test_nothing_is_compiled_or_imported_from_text() -> None:
    found = [
        f"{module}:{node.lineno} {node.id}"
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in {"compile", "__import__"}
    ]
    assert found == []


def test_nothing_above_the_store_compares_dialects() -> None:
    found = []
    for module, tree in modules():
        if module.startswith(KNOWS_DIALECTS):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare | ast.Match):
                subject = node.left if isinstance(node, ast.Compare) else node.subject
                text = ast.unparse(subject)
                if "dialect" in text and ("name" in text or text == "dialect"):
                    found.append(f"{module}:{node.lineno} {text}")
    assert found == []


@pytest.mark.parametrize("name", [*holdfast.__all__, *(f"testing.{name}" for name in holdfast.testing.__all__)])
def test_every_public_name_has_a_docstring(name: str) -> None:
    module, _, bare = name.rpartition(".")
    found = getattr(holdfast.testing if module else holdfast, bare)
    if isinstance(found, str):
        return  # the version
    assert found.__doc__, f"{name} has no docstring"
    assert not found.__doc__.startswith(f"{bare}("), f"{name} has only the docstring that dataclass generates"
    undocumented = [
        f"{name}.{method}"
        for method, value in vars(found).items()
        if not method.startswith("_") and inspect.isfunction(value) and not inspect.getdoc(getattr(found, method))
    ]
    assert undocumented == []


def test_the_client_is_imported_without_the_engine() -> None:
    loaded = "import sys, holdfast.client; print(*sorted(name for name in sys.modules if name.startswith('holdfast.')))"
    names = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout.split()
    engine = ("holdfast.store", "holdfast.runs.submit", "holdfast.worker", "holdfast.web", "holdfast.app")
    assert "holdfast.client.client" in names
    assert [name for name in names if any(name == one or name.startswith(f"{one}.") for one in engine)] == []


def test_an_application_that_declares_jobs_loads_nothing_that_only_a_worker_needs(tmp_path: Path) -> None:
    program = f"""
import sys
from holdfast import Holdfast
hf = Holdfast("sqlite:///{tmp_path}/work.db")

@hf.job()
def double(number: int) -> int:
    return 2 * number

print(*sys.modules)
"""
    names = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    others = ("operate", "orchestrator", "pipelines", "runs.submit", "schedules", "statistics", "web", "worker.worker")
    libraries = ("asyncio", "ctypes", "fastapi", "httpx", "subprocess")
    assert "holdfast.jobs.job" in names
    unneeded = [*(f"holdfast.{one}" for one in others), *libraries]
    assert [name for name in names if any(name == one or name.startswith(f"{one}.") for one in unneeded)] == []
