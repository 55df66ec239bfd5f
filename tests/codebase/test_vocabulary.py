"""Names and words that the glossary has replaced are no longer used."""

from __future__ import annotations

import inspect
import json
import re
import sqlite3
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import click
import pytest

import holdfast
from holdfast import Holdfast, Settings
from holdfast.cli.main import main

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("src", "apps", "system", "examples", "docs", "tests", "bench", "packages", "scripts", ".github")
SUFFIXES = {".py", ".md", ".sql", ".html", ".js", ".ts", ".css", ".toml", ".sh"}
# Third-party code and generated files.
SKIPPED_FOLDERS = {"vendor", "node_modules", "__pycache__", "build", "dist"}

# Old names that have no other meaning, so they must not occur anywhere.
NAMES = (
    "hand_back handed_back HandBack put_off TryLater WaitFor Doorman Chronicle Retainer Tallier Sampler Timetable "
    "QueueFigures PassExists PassNotFound UnknownNeed DepotUnavailable "
    "pass_exists pass_not_found unknown_need depot_unavailable foreign_request give_pass take_pass "
    "NEED_FAILED NOT_SEGMENTS RUN_PUT_OFF RUN_HANDED_BACK RUN_WAITS OPERATED SLOTS_PASSED SCHEDULER_CONTENTION "
    "max_runtime events_end max_requests metrics_open retain_failed "
    "considered_at seen_at made_at since_at drain_at into_at "
    "holdfast_needs holdfast_asks holdfast_holds holdfast_seats holdfast_uniques holdfast_passes holdfast_samples "
    "holdfast_tallies holdfast_marks holdfast_stops holdfast_gates "
    "holdfast_tick holdfast_retain holdfast_retain_failed holdfast_solo holdfast_prefix holdfast_migrate "
    "holdfast_log_level holdfast_max_requests holdfast_metrics_open"
)

# Old words, with the word to use instead. They are also found as parts of names: `_depot`, `for_wish_at`.
WORDS = {
    r"dossiers?": "run details",
    r"depots?": "artifact store",
    r"wish(es|ed)?": "build request",
    r"doorm[ae]n": "middleware",
    r"chronicles?": "event buffer, timeline",
    r"tall(y|ies|ied)": "rollup",
    r"seat(s|ed)?": "capacity",
    r"check-?ups?": "doctor",
    r"errands?": "pending action",
    r"misfortunes?": "failure",
    r"hand(s|ed|ing)?[ -]back": "release",
    r"put(s|ting)?[ -]off": "snooze",
}

# Old calls. Their words alone are ordinary English.
CALLS = (
    r"\b(hf|client)\.(story|news|marks|signs|list_runs|beginning|recorded|operations|retain|passes)\b",
    r"\b(ctx|run|snapshot)\.(needed|tries|story|because)\b",
    r"\bTryAgain\([^)]*\bcounts=",
    r"\bRetry\([^)]*\bsteps=",
    r"\.using\([^)]*\bafter=",
    r"\b(because|audit|solo)=",
)

# Ordinary English words that used to be names in the public interface.
SETTINGS = "tick retain retain_failed solo prefix migrate token log_level max_requests metrics_open"
COMMANDS = "retain passes story dossier checkup --because --every --audit"
SEGMENTS = "passes operations samples dossier story news depot wishes"  # of a route
TABLES = "needs asks holds seats uniques passes samples tallies marks stops gates run build"
COLUMNS = (
    "tries needed audit trace reserved missing look spare errand because since_at into_at considered_at "
    "made_at seen_at drain_at key seal"
)
MEMBERS = (
    "Wish Pass Kin Dossier News Removed Operation Trouble Task Sample Pace "
    "list_runs passes story news marks signs beginning dossier recorded operations checkup retain migration depot "
    "needed tries because words troubles fate seats tasks samples figures gist"
)
PARAMETERS = "because counts max_runtime audit steps retain solo"

EXCEPTIONS = {
    "apps/dailybrief/tests/test_dailybrief_clustering.py": {"seats"},  # seats in a parliament, in a headline
}
STABLE = {"capacity_without_run", "run_without_capacity"}  # codes of `holdfast verify` that scripts may compare


def files() -> Iterator[Path]:
    yield from (file for file in sorted(ROOT.glob("*.md")) if file.name != "CHANGELOG.md")
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            inside = file.relative_to(ROOT).parts[1:]
            skipped = any(part in SKIPPED_FOLDERS or part.startswith(".") for part in inside)
            if file.suffix in SUFFIXES and not skipped and file != Path(__file__):
                yield file


@cache
def texts() -> dict[str, str]:
    return {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in files()}


def occurrences(pattern: str, *, flags: int = 0) -> list[str]:
    """Each match as `file:line word`, without the allowed exceptions."""
    found = []
    for path, text in texts().items():
        for match in re.finditer(pattern, text, flags):
            if match[0].lower() not in EXCEPTIONS.get(path, set()) and around(text, match) not in STABLE:
                found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1} {match[0]}")
    return found


def around(text: str, match: re.Match[str]) -> str:
    """The complete name that contains a match."""
    before, after = re.search(r"\w*$", text[: match.start()]), re.match(r"\w*", text[match.end() :])
    return f"{before[0] if before else ''}{match[0]}{after[0] if after else ''}"


def listed(advice: str, found: list[str]) -> str:
    return "\n".join([f"{advice}:", *found])


def test_no_old_name_is_used() -> None:
    # The same names in capitals are environment variables.
    names = "|".join(f"(?i:{name})" if name.startswith("holdfast_") else name for name in NAMES.split())
    found = occurrences(rf"(?<!\w)({names})(?!\w)")
    assert not found, listed("these names were replaced; see docs/glossary.md", found)


def test_no_old_call_is_used() -> None:
    found = occurrences("|".join(CALLS))
    assert not found, listed("these calls were replaced; see docs/guide/python.md", found)


@pytest.mark.parametrize("word", WORDS)
def test_no_old_word_is_used(word: str) -> None:
    found = occurrences(rf"(?<![a-z])({word})(?![a-z])", flags=re.IGNORECASE)
    assert not found, listed(f"write {WORDS[word]}", found)


def test_no_setting_has_an_old_name() -> None:
    assert set(SETTINGS.split()) & set(Settings.model_fields) == set()


def test_no_command_or_option_has_an_old_name() -> None:
    assert set(COMMANDS.split()) & set(words_of(main)) == set()


def words_of(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield name
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from words_of(below)


def test_no_route_has_an_old_name() -> None:
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))["paths"]
    assert [path for path in paths if set(SEGMENTS.split()) & set(path.split("/"))] == []


def test_no_table_or_column_has_an_old_name(tmp_path: Path) -> None:
    with Holdfast(f"sqlite:///{tmp_path / 'schema.db'}") as hf:
        hf.start()
    connection = sqlite3.connect(tmp_path / "schema.db")
    try:
        tables = [
            name for (name,) in connection.execute("select name from sqlite_master where type in ('table', 'view')")
        ]
        columns = [
            f"{table}.{column[1]}" for table in tables for column in connection.execute(f"pragma table_info({table})")
        ]
    finally:
        connection.close()
    assert [table for table in tables if table.removeprefix("holdfast_") in TABLES.split()] == []
    assert [column for column in columns if column.split(".")[1] in COLUMNS.split()] == []


def test_no_public_name_or_parameter_is_an_old_one(tmp_path: Path) -> None:
    found = [name for name in holdfast.__all__ if name in MEMBERS.split()]
    for name, public in public_classes(tmp_path).items():
        members = {*dir(public), *getattr(public, "__dataclass_fields__", {})}
        found += [f"{name}.{member}" for member in members if member in MEMBERS.split()]
        for member, method in [(name, public), *inspect.getmembers(public, inspect.isfunction)]:
            if not member.startswith("_") or member == "__call__":
                found += [f"{name}.{member}({given})" for given in parameters_of(method) if given in PARAMETERS.split()]
    assert found == []


def public_classes(folder: Path) -> dict[str, type]:
    """The classes that `holdfast` exports, and the namespaces of a `Holdfast`."""
    exported = {name: getattr(holdfast, name) for name in holdfast.__all__}
    with Holdfast(f"sqlite:///{folder / 'never.db'}") as hf:
        namespaces = [name for name, value in vars(Holdfast).items() if isinstance(value, cached_property)]
        classes = {name: value for name, value in exported.items() if inspect.isclass(value)}
        return classes | {f"hf.{name}": type(getattr(hf, name)) for name in namespaces}


def parameters_of(method: object) -> list[str]:
    try:
        return list(inspect.signature(method).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
