"""The reference documents exactly the existing settings, commands, states, events and codes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from tests.docs.pages import PAGES, ROOT, anchors, links, name, table

import holdfast.cli.targets
import holdfast.web.server  # noqa: F401  it defines more subclasses of HoldfastError
from holdfast import Policy
from holdfast.cli import exit_codes
from holdfast.cli.main import COMMANDS, main
from holdfast.store.queries import sources
from holdfast.support.errors import ArtifactCorrupt, ArtifactNotFound, HoldfastError
from holdfast.support.settings import Settings
from holdfast.values.events import KINDS
from holdfast.values.retries import OURS
from holdfast.values.runs import State
from holdfast.web import problems

REFERENCE = ROOT / "docs" / "reference.md"
SOURCE = ROOT / "src" / "holdfast"


def test_every_setting_is_documented_with_its_variable_and_default() -> None:
    rows = {name(row[0]): [name(row[1]), row[2]] for row in table(REFERENCE, "Settings")}
    assert rows == {
        setting: [f"HOLDFAST_{setting.upper()}", shown(field.default)]
        for setting, field in Settings.model_fields.items()
    }


def shown(default: Any) -> str:
    match default:
        case None:
            return "none"
        case timedelta() if default.days:
            return f"{default.days} days"
        case timedelta():
            return f"{default.total_seconds():g} s"
        case bool():
            return str(default).lower()
        case tuple():
            return f"`{','.join(default)}`"
        case int():
            return f"{default:,}"
    return f"`{default}`"


def test_every_command_is_documented_with_its_options() -> None:
    rows = {name(row[0]): set(re.findall(r"`(-[^`]+)`", row[1])) for row in table(REFERENCE, "Commands")}
    assert rows == {
        " ".join(path): {option for each in command.params if isinstance(each, click.Option) for option in each.opts}
        for path, command in commands(main, ())
    }


def test_every_command_explains_itself_with_an_example() -> None:
    for words, command in commands(main, ()):
        assert f"holdfast {' '.join(words)} " in (command.help or ""), words


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        below = command.get_command(context, each)
        assert below is not None
        yield from commands(below, (*path, each))


def test_the_overview_of_commands_has_the_first_line_of_each_help_text() -> None:
    for each, (_, line) in COMMANDS.items():
        command = main.get_command(click.Context(main), each)
        assert command is not None
        assert command.get_short_help_str(limit=200) == line


def test_every_exit_code_is_documented_with_the_text_in_the_code() -> None:
    assert {int(row[0]): row[1] for row in table(REFERENCE, "Exit codes")} == exit_codes.MEANINGS


def test_every_state_is_documented() -> None:
    assert {name(row[0]) for row in table(REFERENCE, "States")} == {"queued", "running", *get_args(State)}


def test_every_place_is_documented() -> None:
    places = set(re.findall(r"'(\w+)' as place", sources("sqlite")["verify"]))
    assert {name(row[0]) for row in table(REFERENCE, "Places")} == places


def test_every_event_is_documented_with_the_text_in_the_code() -> None:
    assert {name(row[0]): row[1] for row in table(REFERENCE, "Events")} == KINDS


def test_every_error_code_is_documented_with_its_exit_code() -> None:
    rows = {name(row[0]): int(row[3]) for row in table(REFERENCE, "Error codes")}
    assert rows == {
        error.code: exit_codes.BY_ERROR.get(error.code, exit_codes.PROBLEM) for error in errors(HoldfastError)
    }


def test_every_error_code_is_documented_with_its_http_status() -> None:
    rows = {name(row[0]): int(row[4]) for row in table(REFERENCE, "Error codes") if row[4]}
    ours = {error.code for error in errors(HoldfastError) if error.__module__ == "holdfast.support.errors"}
    assert rows == problems.STATUS
    assert set(rows) == ours


def test_every_operation_of_the_api_is_documented_with_its_summary() -> None:
    document = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))
    assert {name(row[0]): row[1] for row in table(ROOT / "docs" / "guide" / "api.md", "Operations")} == {
        f"{method.upper()} {path}": operation["summary"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_http_problem_has_a_documented_code() -> None:
    known = {**{code: status for code, (status, _) in problems.HTTP_CODES.items()}, **problems.STATUS}
    for file in (SOURCE / "web").rglob("*.py"):
        for code in re.findall(r'(?:Problem|Refusal)\(\s*"(\w+)"', file.read_text("utf-8")):
            assert code in known, f"{file.name}: {code}"


def test_every_http_only_problem_is_documented() -> None:
    assert {name(row[0]): (int(row[1]), row[2]) for row in table(REFERENCE, "Problems")} == problems.HTTP_CODES


def errors(error: type[HoldfastError]) -> Iterator[type[HoldfastError]]:
    if error.__module__.startswith("holdfast."):
        yield error
    for each in error.__subclasses__():
        yield from errors(each)


def test_every_failure_type_is_documented() -> None:
    assert {name(row[0]) for row in table(REFERENCE, "Failure types")} == set(failure_types())


def test_a_job_cannot_use_a_failure_type_of_the_engine() -> None:
    assert set(failure_types()) - {"ERROR"} == OURS


def failure_types() -> Iterator[str]:
    """Every failure type in the code: from calls of `Failed`, and from returned tuples with a text in capitals."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="Failed"), args=[ast.Constant(value=str(found)), *_]):
                    yield found
                case ast.Return(value=ast.Tuple(elts=[_, ast.Constant(value=str(found)), *_])) if found.isupper():
                    yield found


def test_every_policy_is_documented() -> None:
    documented = {name(row[0]) for row in table(ROOT / "docs" / "guide" / "jobs.md", "Job options")}
    assert documented >= set(Policy.__dataclass_fields__)


def test_every_finding_of_verify_is_documented() -> None:
    found = set(re.findall(r"'(\w+)' as problem", sources("sqlite")["verify"]))
    found |= {error.code for error in (ArtifactNotFound, ArtifactCorrupt)}
    assert {name(row[0]) for row in table(ROOT / "docs" / "guide" / "operations.md", "verify")} == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_an_existing_target(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {link}"
