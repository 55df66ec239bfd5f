"""Writes docs/proofs.md, which lists the tests of each promise in docs/contracts.md, and links to it from there.

contracts.py            write both pages
contracts.py --check    report stale pages, write nothing

The promises in docs/contracts.md are written by hand, and so is the text after 'open', which says what is not proven
yet. The tests are parsed, not run: a marker is `@pytest.mark.contract("P4", "P5")` on a test, a class or a module.
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
PROOFS = ROOT / "docs" / "proofs.md"
ROW = re.compile(r"^\| (?P<number>[A-Z]\d+) \| (?P<promise>.*?) \| (?P<proof>.*) \|$")
MUTANTS = re.compile(r"^(?:The last run, on .*|It has not run yet)\.$", re.MULTILINE)
BREAK = "<br>"
PROOFS_HEAD = """# Proofs

The tests that prove each [promise](contracts.md). `scripts/contracts.py` generates this page from the markers
of the tests (`@pytest.mark.contract("P4")`): don't edit it.
"""


@dataclass(frozen=True)
class Promise:
    """One row of docs/contracts.md."""

    number: str
    words: str
    proof: str

    @property
    def open(self) -> str:
        """What is not proven yet; empty if the proof is complete."""
        found = re.search(r"(?:^|<br>)(open\b.*)$", self.proof)
        return found[1] if found else ""

    @property
    def line(self) -> str:
        return f"| {self.number} | {self.words} | {self.proof} |"


@dataclass(frozen=True)
class Proof:
    """A test that names a promise."""

    number: str
    file: str  # relative to the root of the project
    test: str


def promises(text: str) -> list[Promise]:
    """The promises of the page, in its order."""
    return [
        Promise(number=row["number"], words=row["promise"].strip(), proof=row["proof"].strip())
        for row in map(ROW.match, text.splitlines())
        if row is not None
    ]


def proofs(root: Path = ROOT) -> list[Proof]:
    """Every test that names a promise, from the source of the tests."""
    files = [*root.glob("tests/**/test_*.py"), *root.glob("apps/*/tests/**/test_*.py")]
    found = []
    for file in sorted(files):
        name = str(file.relative_to(root))
        tree = ast.parse(file.read_text("utf-8"))
        found += [Proof(number, name, test) for test, number in _marked(tree, _module_marks(tree))]
    return found


def with_links(text: str, given: list[Proof]) -> str:
    """Return the page of promises; each promise with proofs links to them."""
    lines = []
    for line in text.splitlines():
        if ROW.match(line):
            [promise] = promises(line)
            lines.append(replace(promise, proof=_cell(promise, given)).line)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def proofs_page(text: str, given: list[Proof]) -> str:
    """Return the page of proofs for the promises in this text, with one line for each test."""
    lines = [PROOFS_HEAD]
    for promise in promises(text):
        by_file: dict[str, list[str]] = {}
        for proof in given:
            if proof.number == promise.number and proof.test not in by_file.get(proof.file, ()):
                by_file.setdefault(proof.file, []).append(proof.test)
        lines += [f"## {promise.number}", "", promise.words, ""]
        for file, tests in by_file.items():
            lines += [f"- [{file}](../{file})", *(f"  - `{test}`" for test in tests)]
        if promise.open:
            lines.append(f"- {promise.open}")
        lines.append("")
    return "\n".join(lines)


def note_mutants(*, on: str, breaks: int, survivors: list[str], page: Path = PAGE) -> None:
    """Record on the page when `make mutants` last ran for all promises, and list the breaks that no test noticed."""
    found = "a test failed each time" if not survivors else f"no test noticed {len(survivors)}: {'; '.join(survivors)}"
    line = f"The last run, on {on}, made {breaks} such changes; {found}."
    text, count = MUTANTS.subn(lambda _: line, page.read_text("utf-8"))
    assert count == 1, "docs/contracts.md must have exactly one line 'The last run, on …' or 'It has not run yet.'"
    page.write_text(text, "utf-8")


def _cell(promise: Promise, given: list[Proof]) -> str:
    proved = any(proof.number == promise.number for proof in given)
    link = f"[tests]({PROOFS.name}#{promise.number.lower()})" if proved else ""
    return BREAK.join(part for part in (link, promise.open) if part)


def _marked(tree: ast.AST, above: list[str]) -> Iterator[tuple[str, str]]:
    """Yield every marked test below this node, with the number of its promise."""
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
    given = proofs()
    page = with_links(PAGE.read_text("utf-8"), given)
    new = {PAGE: page, PROOFS: proofs_page(page, given)}
    if arguments == ["--check"]:
        stale = [file for file, text in new.items() if not file.exists() or file.read_text("utf-8") != text]
        for file in stale:
            print(f"{file.relative_to(ROOT)} is stale: run scripts/contracts.py")
        return int(bool(stale))
    for file, text in new.items():
        file.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
