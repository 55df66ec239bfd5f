"""The Python reference lists exactly the public names, with their parameters."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, table

import holdfast
from holdfast import Holdfast
from holdfast.artifacts.artifacts import Artifacts
from holdfast.builds.builds import Builds
from holdfast.operate.bulk import Bulk
from holdfast.pipelines.pipelines import Pipelines
from holdfast.runs.limits.keys import Keys
from holdfast.runs.limits.queues import Queues
from holdfast.runs.workers import Workers
from holdfast.schedules.schedules import Schedules
from holdfast.statistics.statistics import Statistics
from holdfast.tokens import Tokens
from holdfast.values.keys import Holder, Key
from holdfast.values.queues import Queue
from holdfast.values.workers import ActiveRun, WorkerInfo
from holdfast.worker.worker import Worker

PAGE = ROOT / "docs" / "guide" / "python.md"

NAMESPACES: dict[str, type] = {
    "hf.artifacts": Artifacts,
    "hf.builds": Builds,
    "hf.bulk": Bulk,
    "hf.keys": Keys,
    "hf.tokens": Tokens,
    "hf.pipelines": Pipelines,
    "hf.queues": Queues,
    "hf.schedules": Schedules,
    "hf.statistics": Statistics,
    "hf.workers": Workers,
}
CLASSES: dict[str, type] = NAMESPACES | {
    found.__name__: found
    for found in (
        *(Holdfast, holdfast.Job, holdfast.Run, holdfast.Why, holdfast.Snapshot, holdfast.Event, holdfast.Artifact),
        *(
            holdfast.RunFilter,
            holdfast.SearchPage,
            holdfast.Count,
            holdfast.TimelinePage,
            holdfast.Events,
            holdfast.AuditEntry,
        ),
        *(holdfast.Build, holdfast.ScheduleInfo, holdfast.Slot, Key, Holder, Queue),
        *(WorkerInfo, ActiveRun, holdfast.Context, Worker),
    )
}
# Names that only the engine itself uses.
INTERNAL = {
    "Holdfast": "do read store start",
    "Job": "submission draft filled fills decode_arguments encode_result submit_by",
    "Artifact": "at",
    "RunFilter": "plain fits tag_pattern paths",
    "SearchPage": "of whole",
}
# Attributes that are set when an object is created, so its class does not have them.
INSTANCE_ATTRIBUTES: dict[str, dict[str, str | None]] = {
    "Run": {"id": None},
    "Context": {"run": None, "log": None},
    "Worker": {"id": None, "drained": None},
}


def documented(heading: str) -> dict[str, str | None]:
    """The names in a table with their parameters: None for an attribute, … if they are described elsewhere."""
    found: dict[str, str | None] = {}
    for row in table(PAGE, heading):
        for name, _, parameters in re.findall(r"`(\w+)(\(([^)]*)\))?`", row[0]):
            found[name] = parameters if f"`{name}(" in row[0] else None
    return found


def public(cls: type) -> Iterator[tuple[str, str | None]]:
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    internal = INTERNAL.get(cls.__name__, "").split()
    if cls is Holdfast:
        internal += [namespace.removeprefix("hf.") for namespace in NAMESPACES]
    for name in {*dir(cls), *fields}:
        if name.startswith("_") or name in internal:
            continue
        value = inspect.getattr_static(cls, name, None)
        if name in fields or not inspect.isfunction(value):
            yield name, None
            continue
        stars: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        parameters = [each for each in inspect.signature(value).parameters.values() if each.name != "self"]
        yield name, ", ".join(stars.get(each.kind, "") + each.name for each in parameters)


@pytest.mark.parametrize("heading", CLASSES)
def test_every_public_name_is_documented_with_its_parameters(heading: str) -> None:
    cls, found = CLASSES[heading], documented(heading)
    existing = dict(public(cls)) | INSTANCE_ATTRIBUTES.get(heading, {})
    assert found.keys() == existing.keys()
    for name, parameters in found.items():
        if parameters != "…":
            assert parameters == existing[name], name


def test_every_namespace_is_documented_and_named_in_the_help(tmp_path: Path) -> None:
    with Holdfast(f"sqlite:///{tmp_path / 'work.db'}") as hf:
        for namespace, kind in NAMESPACES.items():
            assert type(getattr(hf, namespace.removeprefix("hf."))) is kind
    for namespace in NAMESPACES:
        assert namespace in (inspect.getdoc(Holdfast) or ""), f"help(Holdfast) does not mention {namespace}"


def test_every_class_on_the_page_is_checked_by_these_tests() -> None:
    headings = re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    assert set(headings) - {"From async code"} == CLASSES.keys()
