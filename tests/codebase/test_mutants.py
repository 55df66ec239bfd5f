"""The list of mutants fits the code: every promise has at least one, and each can be applied."""

from __future__ import annotations

import ast

import pytest
from scripts import contracts
from tests.mutants.breaks import ROOT, Break, breaks

BREAKS = breaks()
PROMISES = [promise.number for promise in contracts.promises(contracts.PAGE.read_text("utf-8"))]


@pytest.mark.parametrize("number", PROMISES)
def test_every_promise_has_a_mutant(number: str) -> None:
    assert any(one.promise == number for one in BREAKS)


def test_every_mutant_names_an_existing_promise() -> None:
    assert {one.promise for one in BREAKS} <= set(PROMISES)


@pytest.mark.parametrize("one", BREAKS, ids=str)
def test_every_mutant_can_be_applied(one: Break) -> None:
    broken = one.broken((ROOT / one.file).read_text("utf-8"))
    assert one.find != one.put
    if one.file.endswith(".py"):
        ast.parse(broken)


def test_a_mutant_whose_text_does_not_occur_exactly_once_is_refused() -> None:
    one = Break(promise="P1", file="x.py", find="a", put="b")
    for text in ("", "a a"):
        with pytest.raises(ValueError, match="not once"):
            one.broken(text)


def test_a_mutant_of_a_statement_changes_only_that_statement() -> None:
    text = "-- name: one\na\n\n-- name: one (sqlite)\na\n\n-- name: two\na\n"
    assert Break("P1", "x.sql", "a", "b", statement="one (sqlite)").broken(text) == (
        "-- name: one\na\n\n-- name: one (sqlite)\nb\n\n-- name: two\na\n"
    )
    assert Break("P1", "x.sql", "a", "b", statement="two").broken(text).endswith("-- name: two\nb\n")
    with pytest.raises(ValueError, match="no statement of this name"):
        Break("P1", "x.sql", "a", "b", statement="two (sqlite)").broken(text)


def test_a_mutant_is_tried_again_when_it_or_a_file_changes() -> None:
    first, other = Break("P1", "README.md", "a", "b"), Break("P1", "README.md", "a", "c")
    assert first.digest(["pyproject.toml"]) == first.digest(["pyproject.toml"])
    assert len({first.digest([]), other.digest([]), first.digest(["pyproject.toml"]), first.digest(["gone.py"])}) == 4


def test_the_page_has_one_line_about_the_last_run_of_the_mutants() -> None:
    assert len(contracts.MUTANTS.findall(contracts.PAGE.read_text("utf-8"))) == 1
