"""T-SQL: each text parses as one statement of the kind that its name announces."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from sqlfluff.core import FluffConfig, Linter

from holdfast.store import migrate
from holdfast.store.queries import sources, translate

KINDS = {
    "select": ("anything_left", "count_", "find_", "get_", "list_", "pulse", "read_", "schema_version", "share_"),
    "with_compound": ("verify",),
    "insert": ("ensure_", "insert_", "open_retention_gate", "create_open_key_locks", "take_key_locks"),
    "update": (
        *(
            "adopt_",
            "beat_",
            "clear_",
            "come_",
            "assign_",
            "hand_over_",
            "guard_",
            "lock_",
            "mark_",
            "open_key_locks",
            "pause_",
            "renew_",
        ),
        *("invalidate_", "replace_", "request_", "resume_", "set_", "subtract_"),
    ),
    "delete": ("close_retention_gate", "delete_", "take_ready", "take_oldest_ready"),
    "create_table": ("create_",),
}
# Most of these are updates with names of selects: where a lock hint has no effect, they lock rows by writing them
# unchanged.
LOCKING = dict.fromkeys(
    ("find_all_leases", "find_due", "find_expansions", "find_expired", "find_open_key_locks"), "update"
)
LOCKING |= {"find_root": "with_compound", "lock_run": "select"}
LOCKING |= dict.fromkeys(("count_ready", "list_keys"), "with_compound")  # these lock nothing

FORBIDDEN = {
    "merge": r"\bmerge\b",
    "waitfor": r"\bwaitfor\b",
    "is distinct from": r"\bis\s+(not\s+)?distinct\s+from\b",
    "alter database": r"\balter\s+database\b",
    "limit": r"\blimit\b",
    "returning": r"\breturning\b",
    "on conflict": r"\bon\s+conflict\b",
    "a dirty read": r"\bnolock\b|\breaduncommitted\b",
    "another database's operator": r"\|\||::|->",
    "readpast without readcommittedlock": r"with \((?=[^)]*readpast)(?![^)]*readcommittedlock)[^)]*\)",
    "two hints of one kind": r"with \((?=[^)]*rowlock)(?=[^)]*readcommittedlock)[^)]*\)",
}

OPENED = re.compile(r"openjson\(:\w+\) with \(((?:[^()]|\([^()]*\))*)\) as (\w+)")
COLUMN = re.compile(r"(\[?\w+\]?) (n?varchar)\(")


def statement(name: str) -> str:
    return translate(name, sources("sqlserver")[name], prefix="holdfast_", style="named").text


def test_every_text_parses_as_one_statement_of_its_kind() -> None:
    wrong = {}
    for name in sorted(sources("sqlserver")):
        found = parsed(
            re.sub(r"'[^']*'|:([a-z_]+)", lambda match: f"@{match[1]}" if match[1] else match[0], statement(name))
        )
        if found != [f"{kind_of(name)}_statement"]:
            wrong[name] = found
    assert wrong == {}


def test_every_statement_of_a_migration_parses() -> None:
    for number, statements in migrate.migrations("sqlserver", "holdfast_").items():
        for text in statements:
            found = parsed(text)
            assert found[0].startswith(("create_", "alter_", "drop_", "insert_", "update_")), f"{number}: {found}"
            assert len(found) == 1 or found[0] == "create_trigger", f"{number}: {found}"


def test_no_statement_uses_a_forbidden_form() -> None:
    texts = {name: statement(name).replace(":limit", "") for name in sources("sqlserver")}
    texts |= {f"migration {number}": "\n".join(parts) for number, parts in migrate.migrations("sqlserver", "").items()}
    found = [(name, what) for name, text in texts.items() for what, sign in FORBIDDEN.items() if re.search(sign, text)]
    assert found == []


def test_no_table_is_created_with_an_index_inside() -> None:
    tables = [
        text
        for statements in migrate.migrations("sqlserver", "holdfast_").values()
        for text in statements
        if re.search(r"^create table", text, re.MULTILINE)
    ]
    assert tables
    assert not [text for text in tables if re.search(r"\bindex\b", re.sub(r"--.*", "", text))]


def test_values_from_json_are_compared_with_our_collation() -> None:
    """Values from JSON have the database's collation, and our columns have a binary one: comparisons need `collate`."""
    missing = []
    for name in sources("sqlserver"):
        text = re.sub(r"\bset\b.*?\b(?=output|from|where)", "", statement(name), flags=re.DOTALL)
        for columns, alias in OPENED.findall(text):
            for column, _ in COLUMN.findall(columns):
                value = rf"\b{alias}\.{re.escape(column)}(?!\w)"
                compared = (
                    rf"([=<>]\s*{value}(?! collate)|{value}\s*[=<>]|\b(distinct|in \(select)\s+{value}(?! collate))"
                )
                if re.search(compared, text):
                    missing.append((name, f"{alias}.{column}"))
    assert missing == []


def test_the_driver_gets_one_value_for_each_question_mark() -> None:
    for name, text in sources("sqlserver").items():
        query = translate(name, text, prefix="holdfast_", style="qmark")
        assert query.text.count("?") == len(query.parameters), name
        assert not re.search(r"(?<!:):[a-z]", re.sub(r"'[^']*'", "", query.text)), name


def kind_of(name: str) -> str:
    if name in LOCKING:
        return LOCKING[name]
    found = [kind for kind, beginnings in KINDS.items() if name.startswith(beginnings)]
    assert found, f"add the beginning of {name} to KINDS"
    return found[0]


def parsed(text: str) -> list[str]:
    """The kinds of the statements in a text, or the parser's errors."""
    result = linter().parse_string(text)
    faults = [violation.desc() for violation in result.violations]
    if result.tree is None or faults:
        return faults
    return [part.get_type() for found in result.tree.recursive_crawl("statement") for part in found.segments]


@cache
def linter() -> Any:
    return Linter(config=FluffConfig(overrides={"dialect": "tsql"}))


@pytest.mark.parametrize("text", ["select top 1 from", "update t sett a = 1", "select a b c d from t"])
def test_an_invalid_statement_is_detected(text: str) -> None:
    assert parsed(text)[0].startswith("Line")
