"""No name of an artifact, stage or segment leads outside its folder, and no two names share a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.contract.helpers.artifact_files import stored_files

from holdfast import Context, Holdfast, InvalidSetting
from holdfast.artifacts import artifacts
from holdfast.artifacts.backends import open_artifact_store
from holdfast.support import settings
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "-x", "a\x00b", "x" * 121, "a b", "..\\x", "é"]
)
def test_an_artifact_name_cannot_leave_its_folder(hf: Holdfast, manual: Manual, database: Database, name: str) -> None:
    called: list[Path] = []

    @hf.job(name="work")
    def work(ctx: Context, by_function: bool) -> None:
        ctx.artifact(name, called.append if by_function else b"content")

    for run in (work.submit(by_function=False), work.submit(by_function=True)):
        manual.run_all()
        assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "ERROR")
        assert "InvalidArguments" in str(run.snapshot.error)
    assert called == []
    assert database.count("artifacts") == 0
    assert stored_files(hf) == set()


@pytest.mark.contract("L8", "S4")
@pytest.mark.parametrize(
    "text", ["..", ".", "../..", "/etc", "a/b", "a\\b", "~", "", "x" * 500, "é\u202e", "%2E", "@", "a@1"]
)
def test_no_stage_or_segment_name_leads_outside_the_artifact_folder(text: str) -> None:
    folder = artifacts._folder_name(text)
    assert "/" not in folder
    assert "\\" not in folder
    assert not folder.startswith(".")
    assert 0 < len(folder) <= 80
    assert folder.isascii()


def test_different_names_have_different_folders() -> None:
    texts = [
        "a",
        "A",
        "",
        "~",
        "%7E",
        "a b",
        "a+b",
        "a%20b",
        ".",
        "%2E",
        "é",
        "e",
        "x" * 500,
        "x" * 501,
        "a@1",
        "a%401",
    ]
    assert len({artifacts._folder_name(text) for text in texts}) == len(texts)


@pytest.mark.contract("L8")
def test_a_folder_is_found_by_a_database_that_pads_text_with_blanks() -> None:
    """SQL Server pads 'a' to 'a ' when it compares it with 'ab'; the range of a folder must contain the padded text."""
    values_used: dict[str, str] = {}

    class RecordingTransaction:
        def all(self, name: str, **values: str) -> list[Any]:
            values_used.update(values)
            return []

    folder, tx = "0" * 26, cast("Any", RecordingTransaction())
    artifacts.within(tx, open_artifact_store("artifacts"), folder)
    assert values_used["first"].ljust(30) <= folder.ljust(30) < values_used["last"].ljust(30) <= f"{folder}/stage@~/~"
    artifacts.within(tx, open_artifact_store("artifacts"), folder, below=True)
    assert folder.ljust(30) < values_used["first"].ljust(30) <= f"{folder}/stage@~/~" < values_used["last"].ljust(30)


@pytest.mark.contract("S4")
def test_an_invalid_artifact_location_is_refused_by_name() -> None:
    with pytest.raises(InvalidSetting, match="artifacts: nonsense://x"):
        open_artifact_store("nonsense://x")
    assert settings.load({"artifacts": "az://work/x"}).artifacts == "az://work/x"
    assert settings.load({"artifacts": "some/folder"}).artifacts == Path("some/folder")
