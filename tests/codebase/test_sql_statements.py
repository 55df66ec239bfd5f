"""SQL: every statement has a name, is used, and has the same parameters in every dialect."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

import holdfast
from holdfast.store import migrate
from holdfast.store.macros import DIALECTS, expand
from holdfast.store.queries import Query, Statement, sources, statements, translate

SOURCE = Path(holdfast.__file__).parent
FIRST_WORDS = {"select", "insert", "update", "delete", "with", "create"}

# Matches the beginning of an SQL statement, but not of a sentence.
PASTED = re.compile(
    r"\s*(select\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|(create|alter|drop)\s+"
    r"(table|index|unique|view|trigger|schema|database)\s|begin(\s+(immediate|transaction))?\s*;?$)",
    re.IGNORECASE,
)

# The name of a schema can't be a parameter, so this statement is built in Python.
ALLOWED = {("store/migrate.py", "create schema ")}


class Use(NamedTuple):
    """A call of tx.run, tx.put, tx.all or tx.one; `given` is None if its arguments are unpacked."""

    name: str
    given: frozenset[str] | None
    where: str


@cache
def uses() -> tuple[Use, ...]:
    return tuple(use for path in sorted(SOURCE.rglob("*.py")) for use in _uses_in(path))


def _uses_in(path: Path) -> Iterator[Use]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="tx"), attr="run" | "all" | "one" | "put"),
                args=[ast.Constant(value=str(name))],
            ):
                unpacked = any(keyword.arg is None for keyword in node.keywords)
                given = frozenset(keyword.arg for keyword in node.keywords if keyword.arg is not None)
                yield Use(name, None if unpacked else given, f"{path.relative_to(SOURCE)}:{node.lineno}")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="tx"), attr="run" | "all" | "one" | "put")):
                raise AssertionError(f"{path}:{node.lineno}: write the name of the statement as a literal in the call")


def used_by(dialect: str) -> set[str]:
    """The statements that the code outside the dialects uses, and those that this dialect uses."""
    own = f"store/dialects/{dialect}.py:"
    return {use.name for use in uses() if use.where.startswith(own) or "store/dialects/" not in use.where}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_statement_is_missing_and_none_is_unused(dialect: str) -> None:
    assert set(sources(dialect)) == used_by(dialect)


def test_a_statement_takes_the_same_parameters_on_every_database() -> None:
    taken = {dialect: {name: set(query.parameters) for name, query in bare(dialect).items()} for dialect in DIALECTS}
    shared = set.intersection(*map(set, taken.values()))

    assert [name for name in sorted(shared) if len({frozenset(taken[dialect][name]) for dialect in DIALECTS}) > 1] == []


def test_every_call_passes_the_parameters_of_its_statement() -> None:
    known = {name: set(query.parameters) for dialect in DIALECTS for name, query in bare(dialect).items()}

    assert [use for use in uses() if use.given is not None and use.given != known[use.name]] == []


def test_each_text_is_one_statement_in_lower_case() -> None:
    wrong = []
    for one in statements():
        text = expand(bare_text(one), next(iter(one.dialects), "sqlite"))
        words = re.sub(r"'[^']*'", "''", text)  # string literals keep the case of the stored values
        if words != words.lower() or ";" in text or text.split()[0] not in FIRST_WORDS:
            wrong.append(one.name)
    assert wrong == []


def test_sqlite_returns_plain_columns() -> None:
    """SQLite 3.40 evaluates some expressions in `returning` wrongly: `started_at is not null` is 1 for NULL."""
    wrong = []
    for name, query in bare("sqlite").items():
        _, returning, columns = query.text.partition("returning")
        if returning and not re.fullmatch(r"[a-z_.0-9]+(, [a-z_.0-9]+)*", " ".join(columns.split())):
            wrong.append(name)
    assert wrong == []


def test_no_dialect_repeats_the_text_of_another() -> None:
    texts = Counter(
        (one.name, dialect, " ".join(expand(bare_text(one), dialect).split()))
        for one in statements()
        for dialect in DIALECTS
        if dialect in (one.dialects or DIALECTS)
    )
    assert [name for (name, _, _), times in texts.items() if times > 1] == []


def test_no_common_text_is_replaced_by_every_dialect() -> None:
    own = Counter(one.name for one in statements() for _ in one.dialects)
    assert [one.name for one in statements() if not one.dialects and own[one.name] == len(DIALECTS)] == []


def test_the_texts_of_a_statement_are_next_to_each_other() -> None:
    names = [(one.file, one.name) for one in statements()]
    assert [name for name, _ in groupby(names)] == list(dict.fromkeys(names))
    assert len({name for _, name in names}) == len(set(names)), "a statement is in two files"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_without_a_gap(dialect: str) -> None:
    found = migrate.migrations(dialect, "holdfast_")
    assert list(found) == list(range(1, migrate.latest("sqlite") + 1))
    assert all(statement for statements in found.values() for statement in statements)


@pytest.mark.parametrize(
    ("dialect", "own"),
    [
        ("postgres", {"events.tx"}),
        ("sqlserver", {"events.tx", "leases.locked", "retention_gate.outcome", "runs.key_submitted", "runs.locked"}),
    ],
)
def test_every_dialect_has_the_same_tables_and_columns(dialect: str, own: set[str]) -> None:
    """Except for columns that the locks or the event order of a dialect need."""
    assert columns(dialect) - columns("sqlite") == own
    assert columns("sqlite") - columns(dialect) == set()


def columns(dialect: str) -> set[str]:
    script = "\n".join(statement for each in migrate.migrations(dialect, "").values() for statement in each)
    return {
        f"{table}.{column}"
        for table, body in re.findall(r"^create table (\w+) \((.*?)^\)", script, re.DOTALL | re.MULTILINE)
        for column in re.findall(r"^    \[?(\w+)", body, re.MULTILINE)
        if column not in ("primary", "unique", "constraint", "check", "foreign")
    }


def test_every_file_begins_with_a_comment_about_its_subject() -> None:
    folder = SOURCE / "store" / "sql"
    for file in {one.file for one in statements()}:
        about, _, _ = (folder / file).read_text("utf-8").partition("\n\n")
        assert re.fullmatch(r"-- [A-Z].*(\n-- .*)?\.", about), file


def test_every_header_is_spelt_correctly() -> None:
    """A misspelt header would be a comment, and its statement would become part of the one before."""
    texts = [path.read_text("utf-8") for path in sorted((SOURCE / "store" / "sql").glob("*.sql"))]
    headers = [line for text in texts for line in text.splitlines() if re.match(r"\s*--\s*name\b", line)]
    assert len(headers) == len(statements())


def test_sql_is_only_in_the_store() -> None:
    pasted = [
        (str(path.relative_to(SOURCE)), line, text[:60])
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.is_relative_to(SOURCE / "store" / "dialects") and path != SOURCE / "store" / "macros.py"
        for line, text in _texts_in(path)
        if PASTED.match(text)
    ]
    assert [(path, line, text) for path, line, text in pasted if (path, text) not in ALLOWED] == []


@pytest.mark.parametrize(
    "text",
    ["select 1", "  insert into t values (1)", "update t set a = 1", "DELETE FROM t", "begin immediate", "begin"],
)
def test_sql_in_python_strings_is_detected(text: str) -> None:
    assert PASTED.match(text)


def _texts_in(path: Path) -> Iterator[tuple[int, str]]:
    """String literals that are not docstrings, and the constant parts of f-strings."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def bare(dialect: str) -> dict[str, Query]:
    return {name: translate(name, text, prefix="holdfast_", style="named") for name, text in sources(dialect).items()}


def bare_text(one: Statement) -> str:
    return translate(one.name, one.text, prefix="holdfast_", style="named").text
