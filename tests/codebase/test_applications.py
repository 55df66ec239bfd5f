"""Applications use only the public modules and views of Holdfast and `apps.shared`, and never each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from system import registry

ROOT = Path(__file__).parent.parent.parent
APPS = ROOT / "apps"
FILES = sorted(file for file in APPS.glob("*/**/*.py") if "tests" not in file.relative_to(APPS).parts)
SYSTEM = sorted((ROOT / "system").rglob("*.py"))
PUBLIC = {"holdfast", "holdfast.web", "holdfast.client", "holdfast.testing"}

ENGINE_NAME = re.compile(r"(?:\bholdfast_|\{engine\}|%\(prefix\)s)([a-z_]+)")
VIEWS = {"run_view", "build_view", "event_view", "slot_view"}


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            # `from holdfast import runtime` imports a module, too.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.contract("S1")
@pytest.mark.parametrize("file", FILES + SYSTEM, ids=name)
def test_an_application_imports_only_public_modules(file: Path) -> None:
    modules = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "src" / "holdfast").rglob("*.py")
    }
    assert sorted(set(imported(file)) & (modules - PUBLIC)) == []


@pytest.mark.parametrize("file", FILES, ids=name)
def test_an_application_imports_no_other_application(file: Path) -> None:
    modules = [module.split(".") for module in imported(file)]
    assert {module[1] for module in modules if module[0] == "apps"} <= {"shared", file.relative_to(APPS).parts[0]}
    assert not [module for module in modules if module[0] == "system"]


@pytest.mark.parametrize("name", registry.names())
def test_the_queues_of_an_application_start_with_its_name(name: str) -> None:
    application = registry.find(name)
    assert application.title
    assert application.shows.endswith(".")
    assert all(queue.split(".")[0] == application.name for queue in application.queues)


@pytest.mark.parametrize("file", FILES + SYSTEM + sorted(APPS.rglob("*.sql")), ids=name)
def test_an_application_reads_only_views_of_the_engine(file: Path) -> None:
    assert set(ENGINE_NAME.findall(file.read_text("utf-8"))) <= VIEWS
