"""Writes the column 'proved by' of docs/contracts.md from the markers of the tests.

contracts.py            write it
contracts.py --check    say whether it is stale, write nothing

The numbers and their wording live on the page; so do words that begin with 'open', which say what a proof still
lacks. The tests are read, not run: a marker is `@pytest.mark.contract("P4", "P5")` on a test, a class or a module.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "contracts.md"
ROW = re.compile(r"^\| (?P<number>[A-Z]\d+) \| (?P<promise>.*?) \| (?P<proof>.*) \|$")
MUTANTS = re.compile(r"^(?:Last done on .*|Not done yet)\.$", re.MULTILINE)
BREAK = "<br>"


@dataclass(frozen=True)
class Promise:
    """One line of the page."""

    number: str
    words: str
    proof: str

    @property
    def open(self) -> str:
        """What a proof still lacks, in words; empty when nothing."""
        found = re.search(r"(?:^|<br>)(open\b.*)$", self.proof)
        return found[1] if found else ""

    @property
    def line(self) -> str:
        return f"| {self.number} | {self.words} | {self.proof} |"


@dataclass(frozen=True)
class Proof:
    """A test that names a promise."""

    number: str
    file: str
    test: str


def promises(text: str) -> list[Promise]:
    """What the page promises, in its order."""
    return [
        Promise(number=row["number"], words=row["promise"].strip(), proof=row["proof"].strip())
        for row in map(ROW.match, text.splitlines())
        if row is not None
    ]


def proofs(root: Path = ROOT) -> list[Proof]:
    """Every test that names a promise, by reading the tests."""
    files = [*root.glob("tests/**/test_*.py"), *root.glob("apps/*/tests/**/test_*.py")]
    found = []
    for file in sorted(files):
        name = str(file.relative_to(root)).removesuffix(".py").removeprefix("tests/")
        tree = ast.parse(file.read_text("utf-8"))
        found += [Proof(number, name, test) for test, number in _marked(tree, _module_marks(tree))]
    return found


def rendered(text: str, given: list[Proof]) -> str:
    """The page with its column 'proved by' as the tests have it."""
    lines = []
    for line in text.splitlines():
        if ROW.match(line):
            [promise] = promises(line)
            lines.append(replace(promise, proof=_cell(promise, given)).line)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def note_mutants(*, on: str, breaks: int, survivors: list[str], page: Path = PAGE) -> None:
    """Say on the page when every promise was last broken, and what no test noticed."""
    found = (
        "a test turned red each time" if not survivors else f"no test noticed {len(survivors)}: {'; '.join(survivors)}"
    )
    text, count = MUTANTS.subn(f"Last done on {on} with {breaks} breaks: {found}.", page.read_text("utf-8"))
    assert count == 1, "the page has one line about it"
    page.write_text(text, "utf-8")


def _cell(promise: Promise, given: list[Proof]) -> str:
    by_file: dict[str, list[str]] = {}
    for proof in given:
        if proof.number == promise.number and proof.test not in by_file.get(proof.file, ()):
            by_file.setdefault(proof.file, []).append(proof.test)
    parts = [f"**{file}** " + " ".join(f"`{test}`" for test in tests) for file, tests in by_file.items()]
    return BREAK.join([*parts, promise.open] if promise.open else parts)


def _marked(tree: ast.AST, above: list[str]) -> Iterator[tuple[str, str]]:
    """(test, number) of every marked test below this node."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _marked(node, above + _numbers(node.decorator_list))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for number in above + _numbers(node.decorator_list):
                yield node.name, number


def _module_marks(tree: ast.Module) -> list[str]:
    marks: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            values = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            marks += _numbers(values)
    return marks


def _numbers(marks: list[ast.expr]) -> list[str]:
    return [
        argument.value
        for mark in marks
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.contract"
        for argument in mark.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def main(arguments: list[str]) -> int:
    text = PAGE.read_text("utf-8")
    new = rendered(text, proofs())
    if arguments == ["--check"]:
        print("docs/contracts.md is as the tests say" if new == text else "stale: run scripts/contracts.py")
        return int(new != text)
    PAGE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
