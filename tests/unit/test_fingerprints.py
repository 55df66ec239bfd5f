"""Fingerprints are the same on every machine, and differ if the content differs."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import NoFingerprint, fingerprint

PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def folder(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_fingerprints_do_not_change_between_versions() -> None:
    """The expected values are constants: if they changed, all builds of all users would be made again."""
    parts: list[Any] = ["text", b"bytes", 1, 1.5, True, None, {"b": 2, "a": [1, "x"]}]
    assert fingerprint(*parts) == "353ddb44d4951403f993a40602fca3c3b505f363975a4a13164127dc72feec27"
    assert fingerprint() == "aca704424e6c33d623b25aa340fb7add8dfbd6021c60260487fcfc2dd8929efb"


@given(st.lists(PARTS, max_size=4))
def test_values_equal_in_value_and_type_have_the_same_fingerprint(parts: list[Any]) -> None:
    assert fingerprint(*parts) == fingerprint(*parts)
    assert fingerprint(parts) == fingerprint(tuple(parts))
    assert len(fingerprint(*parts)) == 64


@given(st.lists(PARTS, max_size=3), st.lists(PARTS, max_size=3))
def test_different_parts_have_different_fingerprints(one: list[Any], other: list[Any]) -> None:
    if repr(one) != repr(other) and one != other:
        assert fingerprint(*one) != fingerprint(*other)


def test_differently_split_or_spelled_parts_have_different_fingerprints(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ab")
    alike: list[tuple[Any, ...]] = [
        ("ab",), ("a", "b"), ("", "ab"), ("ab", ""), (["ab"],), (["a", "b"],), ({"a": "b"},), (b"ab",),
        (tmp_path / "file",), (tmp_path,), (1,), ("1",), (1.0,), (True,), ("True",), (None,), ("None",), ([],), ({},),
        (), ("\ntext 2\nab",),
    ]  # fmt: skip
    found = [fingerprint(*parts) for parts in alike]
    assert [pair for pair in itertools.combinations(range(len(alike)), 2) if found[pair[0]] == found[pair[1]]] == []


def test_the_order_of_a_mapping_does_not_matter() -> None:
    assert fingerprint({"a": 1, "b": {"x": 1, "y": 2}}) == fingerprint({"b": {"y": 2, "x": 1}, "a": 1})


def test_the_fingerprint_of_a_folder_covers_file_names_and_contents(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", pyproject="[project]", src__app="print()", src__empty="")
    other = folder(tmp_path / "other", src__empty="", src__app="print()", pyproject="[project]")
    os.utime(other / "pyproject", (1, 1))
    (other / "src/app").chmod(0o755)
    (other / "void").mkdir()
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) == fingerprint(Path(os.path.relpath(one))), "a relative path gives the same fingerprint"

    before = fingerprint(other)
    (other / "src/app").write_text("print(1)")
    assert fingerprint(other) != before
    (other / "src/app").write_text("print()")
    (other / "src/app").rename(other / "src/app2")
    assert fingerprint(other) != before


def test_ignored_files_do_not_count(tmp_path: Path) -> None:
    source = folder(tmp_path / "a", app="1", **{"cache__x.pyc": "2", "docs__index.md": "3", "sub__docs__index.md": "4"})
    plain = fingerprint(source, ignore=["*.pyc", "docs/*.md"])
    (source / "cache/x.pyc").write_text("changed")
    (source / "docs/index.md").unlink()
    assert fingerprint(source, ignore=["*.pyc", "docs/*.md"]) == plain
    (source / "sub/docs/index.md").write_text("changed")
    assert fingerprint(source, ignore=["*.pyc", "docs/*.md"]) != plain
    assert fingerprint(source, ignore="*") == fingerprint(folder(tmp_path / "b", x=""), ignore="x")


def test_a_link_to_a_file_counts_as_that_file(tmp_path: Path) -> None:
    real = folder(tmp_path / "real", app="1")
    linked = folder(tmp_path / "linked")
    linked.mkdir()
    (linked / "app").symlink_to(real / "app")
    assert fingerprint(linked) == fingerprint(real)


@pytest.mark.contract("S4")
def test_a_value_without_a_fingerprint_is_refused(tmp_path: Path) -> None:
    source = folder(tmp_path / "a", app="1")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop/back").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling/link").symlink_to(tmp_path / "nowhere")
    wrong: list[tuple[Any, str]] = [
        (tmp_path / "missing", "missing: No such file"),
        (tmp_path / "pipe", "neither a file nor a folder"),
        (tmp_path / "loop", "is a link to a folder"),
        (tmp_path / "dangling", "link is a broken link"),
        (object(), "type object has no fingerprint"),
        ({1, 2}, "type set has no fingerprint"),
        ({1: "x"}, "the names of a mapping must be text"),
        ([source, {"x": object()}], "type object has no fingerprint"),
    ]
    for part, message in wrong:
        with pytest.raises(NoFingerprint, match=message):
            fingerprint("fine", part)


def test_fingerprints_are_the_same_in_other_processes_and_with_other_hash_seeds(tmp_path: Path) -> None:
    folder(tmp_path, b="2", a="1", sub__c="3")
    program = (
        "from pathlib import Path; from holdfast import fingerprint; "
        f"print(fingerprint(Path({str(tmp_path)!r}), {{'b': 1, 'a': [None, 1.5]}}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert found == {fingerprint(tmp_path, {"a": [None, 1.5], "b": 1})}
