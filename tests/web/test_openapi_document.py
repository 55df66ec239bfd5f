"""The OpenAPI document matches the API, and the TypeScript types match the document.

Regenerate both after a change: make types
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scripts import typescript
from tests.web.conftest import Server

from holdfast import Holdfast, Snapshot
from holdfast.values.artifacts import Artifact
from holdfast.values.builds import Build
from holdfast.values.policies import Policy
from holdfast.values.runs import Step
from holdfast.web import Site
from holdfast.web.api import nouns, openapi

DOCS = Path(__file__).parent.parent.parent / "docs"


@cache
def document() -> dict[str, Any]:
    return typescript.described()


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_the_stored_document_matches_the_api() -> None:
    compare(DOCS / "openapi.json", typescript.as_text(document()))


def test_the_stored_types_match_the_document() -> None:
    compare(DOCS / "holdfast.d.ts", typescript.types(document()))


def compare(file: Path, found: str) -> None:
    if os.environ.get("HOLDFAST_SNAPSHOTS") == "write":
        file.write_text(found, "utf-8")
    assert file.read_text("utf-8") == found


def test_a_changed_document_changes_the_types() -> None:
    changed = typescript.described()
    changed["components"]["schemas"]["Queue"]["properties"]["name"] = {"type": "integer"}
    assert typescript.types(changed) != typescript.types(document())


def test_the_typescript_compiler_accepts_the_types_and_finds_wrong_uses(tmp_path: Path) -> None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    compiler = cache / "holdfast" / "typescript-5.9.3" / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.skip("no TypeScript: it is not installed and can't be installed here")
    (tmp_path / "holdfast.d.ts").write_text((DOCS / "holdfast.d.ts").read_text("utf-8"))
    (tmp_path / "good.ts").write_text(
        """\
        import type { Api, Run, Submit } from "./holdfast";
        const asked: Submit = { job: "app.greet", args: { name: "Ada" }, priority: 3 };
        const ended = (run: Run): boolean => run.finished_at !== null && run.state !== "running";
        const query: Api["list_runs"]["query"] = { state: "failed", arg: ["size=64"] };
        const page = (answer: Api["list_runs"]["answer"]): string | null => answer.next;
        export { asked, ended, page, query };
        """
    )
    (tmp_path / "bad.ts").write_text(
        """\
        import type { Run, Submit } from "./holdfast";
        const asked: Submit = { args: {} };
        const state = (run: Run): "done" => run.state;
        export { asked, state };
        """
    )
    told = subprocess.run(
        [
            compiler,
            "--noEmit",
            "--strict",
            "--skipLibCheck",
            "--lib",
            "es2022",
            "--pretty",
            "false",
            "good.ts",
            "bad.ts",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    ).stdout.splitlines()
    assert [line.partition("(")[0] for line in told if not line.startswith(" ")] == ["bad.ts", "bad.ts"], told


def test_every_operation_has_an_id_a_summary_a_tag_and_its_problems() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids))
    assert document()["openapi"].startswith("3.1")
    assert document()["security"] == [{"token": []}]
    for path, _, operation in operations():
        assert operation["summary"], path
        assert operation["tags"][0] in openapi.TAGS, path
        assert set(openapi.PROBLEMS) <= operation["responses"].keys(), path


def test_request_schemas_refuse_unknown_fields() -> None:
    schemas = document()["components"]["schemas"]
    for path, _, operation in operations():
        if "requestBody" in operation:
            ref = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            assert schemas[ref.rpartition("/")[2]]["additionalProperties"] is False, path


def test_every_list_is_bounded() -> None:
    for path, _, operation in operations():
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            if parameter["name"] == "limit":
                assert schema["maximum"] <= 1000, path
            for one in schema.get("anyOf", [schema]):
                if one.get("type") == "string" and "enum" not in one and one.get("format") != "date-time":
                    assert "maxLength" in one, (path, parameter["name"])


@pytest.mark.parametrize(
    ("shape", "value", "also"),
    [
        ("Run", Snapshot, {"cut"}),
        ("Policy", Policy, set()),
        ("Build", Build, {"cut", "uses"}),
        ("Step", Step, {"cut"}),
        ("Artifact", Artifact, {"address"}),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_the_api_exposes_every_field_of_the_python_values(shape: str, value: Any, also: set[str]) -> None:
    shown = set(document()["components"]["schemas"][shape]["properties"])
    assert shown == {field.name for field in dataclasses.fields(value)} | also


def test_a_list_is_a_page_with_every_field_of_its_items() -> None:
    schemas = document()["components"]["schemas"]
    pages = {name: schema for name, schema in schemas.items() if "Page_" in name}
    assert {"Page_Queue_", "Page_ScheduleInfo_", "SearchPage_Run_"} < pages.keys()
    for schema in pages.values():
        assert {"items", "next"} <= schema["properties"].keys() == set(schema["required"])
        item = schema["properties"]["items"]["items"].get("$ref", "").rpartition("/")[2]
        if item:
            assert schemas[item]["properties"].keys() == set(schemas[item]["required"]), item


def test_the_document_is_served_with_its_mount_path(shared: Server) -> None:
    answer = shared.client("viewer").get("/api/openapi.json")
    served = answer.json()
    assert served.pop("servers") == [{"url": "/"}]
    assert served == document()
    assert shared.client().get("/api/openapi.json").status_code == 401


def test_the_document_needs_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    typescript.described()
    assert not list(tmp_path.iterdir())


def test_the_document_does_not_depend_on_the_jobs_of_an_application(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:

        @hf.job()
        def anything(size: int) -> None: ...

        assert openapi.document(nouns(Site(hf, admin_token="a-token-of-enough-characters"))) == document()
