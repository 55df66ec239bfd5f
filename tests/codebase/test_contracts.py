"""Every promise is proved by a test or marked 'open', and the generated page of proofs is up to date."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HOW_MANY = {"P": 11, "J": 16, "Q": 20, "X": 7, "L": 10, "S": 6}
NUMBERS = [f"{letter}{number}" for letter, count in HOW_MANY.items() for number in range(1, count + 1)]


def load() -> Any:
    spec = importlib.util.spec_from_file_location("contracts_script", ROOT / "scripts" / "contracts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


contracts = load()
TEXT = (ROOT / "docs" / "contracts.md").read_text("utf-8")
PAGE = {promise.number: promise for promise in contracts.promises(TEXT)}


@cache
def proofs() -> Any:
    """Computed when a test needs it, because processes that only collect the tests do not need it."""
    return contracts.proofs()


def test_the_page_has_every_number_once_in_order() -> None:
    assert [promise.number for promise in contracts.promises(TEXT)] == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_every_promise_has_a_proof_or_is_marked_open(number: str) -> None:
    promise = PAGE[number]
    proved = {proof.test for proof in proofs() if proof.number == number}
    assert len(promise.words) > 20, "the promise has no text"
    assert proved or promise.open, f"{number} has neither a test nor the word 'open'"
    if not proved:
        assert promise.open.startswith("open: "), f"{number} has no test: write 'open: ' and how it will be proved"
    elif promise.open:
        assert promise.open.startswith("open in part: "), (
            f"{number} has tests: write 'open in part: ' and what is missing"
        )


def test_a_test_names_only_existing_promises() -> None:
    unknown = {f"{proof.file} {proof.test}: {proof.number}" for proof in proofs() if proof.number not in PAGE}
    assert unknown == set()


def test_the_pages_are_up_to_date_with_the_markers_of_the_tests() -> None:
    assert contracts.with_links(TEXT, proofs()) == TEXT, "stale: run scripts/contracts.py"
    assert contracts.proofs_page(TEXT, proofs()) == contracts.PROOFS.read_text("utf-8"), (
        "stale: run scripts/contracts.py"
    )


def test_markers_are_found_on_functions_classes_and_modules(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "unit"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(
        "import pytest\n"
        "pytestmark = [pytest.mark.contract('P1'), pytest.mark.timeout(9)]\n"
        "@pytest.mark.contract('P2', 'P3')\n"
        "def test_one(): ...\n"
        "@pytest.mark.contract('P4')\n"
        "class TestTwo:\n"
        "    async def test_three(self): ...\n"
        "def helper(): ...\n"
    )
    found = {(proof.file, proof.test, proof.number) for proof in contracts.proofs(tmp_path)}
    assert found == {
        ("tests/unit/test_it.py", test, number)
        for test, numbers in {"test_one": "123", "test_three": "14"}.items()
        for number in (f"P{digit}" for digit in numbers)
    }


def test_a_promise_links_to_its_proofs_and_keeps_its_open_mark() -> None:
    proof = contracts.Proof("P1", "tests/unit/test_it.py", "test_one")
    for old in ("", "[tests](gone.md)<br>"):
        assert contracts.with_links(f"| P1 | It does. | {old}open in part: the rest |\n", [proof]) == (
            "| P1 | It does. | [tests](proofs.md#p1)<br>open in part: the rest |\n"
        )
    assert contracts.with_links("| P1 | It does. | open: later |\n", []) == "| P1 | It does. | open: later |\n"
    assert contracts.with_links("| P1 | It does. | [tests](proofs.md#p1) |\n", []) == "| P1 | It does. |  |\n"


def test_the_page_of_proofs_lists_each_test_once_below_its_promise() -> None:
    page = "| P1 | It does. |  |\n| P2 | It too. | open: later |\n"
    given = [contracts.Proof("P1", "tests/test_it.py", test) for test in ("test_one", "test_two", "test_one")]
    assert contracts.proofs_page(page, given).removeprefix(contracts.PROOFS_HEAD) == (
        "\n## P1\n\nIt does.\n\n- [tests/test_it.py](../tests/test_it.py)\n  - `test_one`\n  - `test_two`\n"
        "\n## P2\n\nIt too.\n\n- open: later\n"
    )
