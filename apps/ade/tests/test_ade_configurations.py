"""Configurations of ade: which files are valid, and what their fingerprint depends on."""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from apps.ade import configurations, install
from apps.ade.configurations import BadConfiguration
from apps.ade.tables import Version
from apps.ade.tests import engine_runs
from apps.ade.tests.ade_service import files
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import fingerprint


def version(saved: dict[str, str]) -> Version:
    return Version(configuration_id="c", number=1, digest=fingerprint(saved), files="{}", created_at=datetime.now(UTC))


@pytest.mark.contract("Q3")
def test_a_fingerprint_depends_only_on_the_files_the_engine_and_the_platform() -> None:
    plain = files()

    def fingerprint_of(saved: dict[str, str], *, engine: str = "1.0.0", platform: str = "cpython-311-x86_64") -> str:
        return configurations.fingerprint(version(saved), engine=engine, platform=platform)

    first = fingerprint_of(plain)
    assert first == fingerprint_of(dict(reversed(plain.items())))
    assert len(first) == 64
    known = {"ade.toml": 'name = "x"\n', "rules.py": "rules = None\n"}
    assert (
        fingerprint_of(known) == "f1bbe5745955be77c4e7f7403baf663da628c1a2270c72c2cc2b9037c4c76a12"
    )  # the same on every machine
    others = [
        fingerprint_of(plain, engine="1.0.1"),
        fingerprint_of(plain, platform="cpython-312-x86_64"),
        fingerprint_of(plain | {"rules.py": plain["rules.py"] + " "}),
        fingerprint_of({"ade.toml": plain["ade.toml"], "rule.py": plain["rules.py"]}),
    ]
    assert len({first, *others}) == 5


@pytest.mark.parametrize(
    "path",
    ["../a.py", "/etc/passwd", "a//b.py", "a/../b.py", ".hidden", "a b.py", "", "a/", "con\0.py", "x" * 201, "a\\b.py"],
)
def test_a_path_that_could_lead_outside_is_refused(path: str) -> None:
    with pytest.raises(BadConfiguration, match="not a valid file path"):
        configurations.check(files() | {path: "x"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ade.toml": "name = "}, "ade.toml"),
        ({"ade.toml": f"name = {'9' * 5000}"}, "ade.toml"),
        ({"ade.toml": f"name = {'[' * 100_000}"}, "ade.toml"),
        ({"a": "x", "a/b.py": "x"}, "is both a file and a folder"),
        ({"RULES.py": "x"}, "upper and lower case"),
        ({"x.py": "\0"}, "not text"),
        ({"x.py": "\ud800"}, "not text"),
        ({"x.py": "x" * 1_000_001}, "1,000,000 bytes"),
        ({f"x{number}.py": "" for number in range(100)}, "100 files"),
        ({"ade.toml": 'dependencies = "x"'}, "list"),
        ({"ade.toml": "dependencies = [1]"}, "list"),
    ],
)
def test_invalid_files_are_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(BadConfiguration, match=message):
        configurations.check(files() | change)


def test_a_configuration_without_a_manifest_is_refused() -> None:
    with pytest.raises(BadConfiguration, match=r"needs a file ade\.toml"):
        configurations.check({"rules.py": ""})


@pytest.mark.parametrize(
    "dependency",
    [
        "--index-url=http://evil.test",
        "-r /etc/passwd",
        "x @ http://evil.test/x.whl",
        "git+https://evil.test/x",
        "./local",
        "/abs",
        "x; import os",
        "x\ny",
        "",
    ],
)
def test_a_dependency_that_is_an_option_or_a_url_is_refused(dependency: str) -> None:
    with pytest.raises(BadConfiguration, match="not a package name"):
        configurations.dependencies({"ade.toml": f"dependencies = [{dependency!r}]"})


def test_names_with_versions_are_accepted_as_dependencies() -> None:
    dependency = ["python-stdnum>=1.20", "babel == 2.16.0", "a[b,c]~=1.0, !=1.0.3", "x"]
    assert configurations.dependencies({"ade.toml": f"dependencies = {dependency!r}"}) == dependency


def zipped(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_a_zip_is_accepted_with_or_without_a_top_folder() -> None:
    plain = {name: text.encode() for name, text in files().items()}
    inside = {f"mine/{name}": text for name, text in plain.items()} | {"mine/__pycache__/x.pyc": b"\x00\xff"}
    assert configurations.unzipped(zipped(plain)) == configurations.unzipped(zipped(inside)) == files()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04nothing", "can't be read"),
        (zipped({"a.py": bytes(5_000_000)}), "1,000,000 bytes"),
        (zipped({"a.py": b"\xff\xfe"}), "not text in UTF-8"),
        (zipped({f"{number}.py": b"" for number in range(200)}), "100 files"),
        (zipped({f"{number}.py": bytes(100_000) for number in range(20)}), "1,000,000 bytes"),
    ],
)
def test_a_bad_zip_is_refused_before_it_is_unpacked(content: bytes, message: str) -> None:
    with pytest.raises(BadConfiguration, match=message):
        configurations.unzipped(content)


@settings(max_examples=300, deadline=None)
@given(where=st.integers(0, 10_000), what=st.binary(min_size=1, max_size=8), kind=st.sampled_from([0, 8, 12, 14]))
def test_a_damaged_zip_is_refused_with_a_message_or_accepted(where: int, what: bytes, kind: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, text in files().items():
            archive.writestr(name, text)
    whole = bytearray(buffer.getvalue())
    whole[where % len(whole) : where % len(whole) + len(what)] = what
    with contextlib.suppress(BadConfiguration):
        configurations.unzipped(bytes(whole))


@pytest.mark.parametrize("name", ['Ünïcode & "quotes" \\ 😀', "---"])
def test_a_new_configuration_starts_with_rules_that_load(name: str, tmp_path: Path) -> None:
    starter = configurations.check(configurations.starter_files(name))
    assert configurations.manifest(starter)["title"] == name
    configurations.write_to(starter, tmp_path)
    assert json.loads(engine_runs.start("check", "--config", str(tmp_path)).stdout)["title"] == name


def test_the_paths_of_a_zip_are_checked_when_it_is_saved() -> None:
    unzipped = configurations.unzipped(zipped({"ade.toml": b"", "../../evil.py": b"x"}))
    with pytest.raises(BadConfiguration, match="not a valid file path"):
        configurations.check(unzipped)


def test_an_environment_gets_every_package_that_the_engine_needs() -> None:
    project = tomllib.loads((install.PACKAGE / "pyproject.toml").read_text())["project"]
    assert [each.split(">")[0] for each in project["dependencies"]] == ["openpyxl"]
    assert install.ENGINE_DEPENDENCIES == ("openpyxl", "et_xmlfile")
    assert install.engine_version() == project["version"]
