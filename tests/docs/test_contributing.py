"""The page for contributors names the existing commands and folders; the glossary defines each word once."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.pages import ROOT, name, table

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
GLOSSARY = ROOT / "docs" / "glossary.md"


def test_every_make_command_is_documented() -> None:
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert [name(row[0]) for row in table(CONTRIBUTING, "Commands")] == [f"make {target}" for target in targets[1:]]


def test_every_folder_of_tests_is_documented() -> None:
    folders = {file.relative_to(ROOT / "tests").parts[0] for file in (ROOT / "tests").glob("*/**/*.py")}
    assert {name(row[0]) for row in table(CONTRIBUTING, "Tests")} == folders


def test_the_glossary_defines_each_word_once_in_one_sentence() -> None:
    headings = re.findall(r"^## (.+)$", GLOSSARY.read_text("utf-8"), flags=re.MULTILINE)
    rows = [row for heading in headings for row in table(GLOSSARY, heading)]
    assert [word for word, count in Counter(row[0] for row in rows).items() if count > 1] == []
    assert [word for word, meaning in rows if not meaning.endswith(".") or ". " in meaning] == []
