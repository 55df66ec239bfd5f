"""Code of a configuration that raises, loops or prints: errors name the function, and the events stay intact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from apps.ade.tests.engine_runs import (
    INVOICES,
    PACKAGE,
    PEOPLE,
    configuration,
    csv,
    modules_as_before,
    run_here,
    run_process,
    start,
)

import ade_engine
from ade_engine.cli import main

TEXT = "Name,Age\nAnn,1\nBen,2\nCim,3\n"


def with_code(folder: Path, code: str) -> Path:
    return configuration(folder, PEOPLE + code)


RAISING: dict[str, tuple[str, dict[str, Any]]] = {
    "detector": (
        "@rules.detector('age')\ndef odd(column):\n    return 1 / 0\n",
        {"kind": "detector", "function": "odd", "field": "age", "row": 1},
    ),
    "transform": (
        "@rules.transform('age')\ndef odd(value):\n    return [][value] if value == 2 else value\n",
        {"kind": "transform", "function": "odd", "field": "age", "row": 3},
    ),
    "validator": (
        "@rules.validator('name')\ndef odd(value, row):\n    raise RuntimeError('no')\n",
        {"kind": "validator", "function": "odd", "field": "name", "row": 2},
    ),
    "row": (
        "@rules.check\ndef odd(row):\n    return row['nothing']\n",
        {"kind": "row validator", "function": "odd", "row": 2},
    ),
    "exit": (
        "@rules.transform('age')\ndef odd(value):\n    exit(0)\n",
        {"kind": "transform", "function": "odd", "field": "age", "row": 2},
    ),
    "deep": (
        "@rules.transform('age')\ndef odd(value):\n    return odd(value)\n",
        {"kind": "transform", "function": "odd", "field": "age", "row": 2},
    ),
}


@pytest.mark.parametrize("kind", RAISING)
def test_an_error_names_the_function_the_field_and_the_row(tmp_path: Path, kind: str) -> None:
    code, details = RAISING[kind]
    outcome = run_here(with_code(tmp_path / "c", code), csv(tmp_path, TEXT), tmp_path / "o")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.exit_code) == ("code_raised", 6)
    assert details.items() <= outcome.error.details.items()
    assert str(outcome.error.details["at"]).startswith("rules.py:")
    assert outcome.report["failure"]["code"] == "code_raised"
    assert not (tmp_path / "o" / "output.xlsx").exists()


def test_a_value_error_rejects_the_row_and_the_run_continues(tmp_path: Path) -> None:
    code = (
        "@rules.transform('age')\ndef odd(value):\n    if value == 2: raise ValueError('two is bad')\n    return value"
    )
    outcome = run_here(with_code(tmp_path / "c", code), csv(tmp_path, TEXT), tmp_path / "o")
    assert [row[:2] for row in outcome.sheet()[1:]] == [["Ann", 1], ["Cim", 3]]
    assert outcome.sheet("Rejected")[1] == ["Sheet1!A3", "age", "bad_value", "age: two is bad", "Ben", "2"]
    assert outcome.of("row.rejected")[0]["count"] == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("@rules.detector('age')\ndef odd(column):\n    return 7\n", "returned 7"),
        ("@rules.transform('age')\ndef odd(value):\n    return [value]\n", "which a cell can't hold"),
        ("@rules.validator('age')\ndef odd(value):\n    return 3.5\n", "returned a float"),
    ],
)
def test_a_return_value_of_the_wrong_type_is_an_error(tmp_path: Path, code: str, message: str) -> None:
    outcome = run_here(with_code(tmp_path / "c", code), csv(tmp_path, TEXT), tmp_path / "o")
    assert outcome.error is not None
    assert outcome.error.code == "code_raised"
    assert message in outcome.error.message


LOOPS = """
@rules.transform('age')
def never(value):
    while True:
        try:
            while True:
                value += 1
        except Exception:
            pass
"""
SLOW_EXPRESSION = (
    "import re\n@rules.transform('name')\ndef never(value):\n    return re.fullmatch('(a+)+b', 'a' * 60)\n"
)


@pytest.mark.parametrize("code", [LOOPS, SLOW_EXPRESSION], ids=["loop", "expression"])
def test_an_endless_call_is_stopped_and_named(tmp_path: Path, code: str) -> None:
    status, events, _ = run_process(
        with_code(tmp_path / "c", code), csv(tmp_path, TEXT), tmp_path / "o", "--call-seconds", "1"
    )
    assert status == 6
    assert events[-1]["code"] == "code_too_slow"
    assert events[-1]["details"]["function"] == "never"
    assert events[-1]["details"]["row"] == 2


PRINTING = """
import os, sys, subprocess
print("loading")
@rules.transform('age')
def noisy(value):
    print("x" * 2000)
    print('{"event": "run.finished"}')
    sys.stderr.write("half a line")
    os.write(1, b'{"event": "run.finished"}\\n')
    subprocess.run([sys.executable, "-c", "print('child')"])
    return value
"""


def test_printed_text_never_mixes_with_the_events(tmp_path: Path) -> None:
    status, events, errors = run_process(with_code(tmp_path / "c", PRINTING), csv(tmp_path, TEXT), tmp_path / "o")
    assert status == 0
    assert [one["sequence"] for one in events] == list(range(1, len(events) + 1))
    assert [one["event"] for one in events].count("run.finished") == 1
    logged = [one["text"] for one in events if one["event"] == "log"]
    assert logged[:3] == ["loading", "x" * 500, '{"event": "run.finished"}']
    assert errors.count("child") == 3
    assert errors.count('{"event": "run.finished"}') == 3


def test_printed_text_is_limited(tmp_path: Path) -> None:
    code = "@rules.transform('age')\ndef noisy(value):\n    for n in range(5000): print(n)\n"
    code += "    print('y' * 10_000_000, end='')\n    return value\n"
    status, events, _ = run_process(with_code(tmp_path / "c", code), csv(tmp_path, TEXT), tmp_path / "o")
    assert status == 0
    assert len([one for one in events if one["event"] == "log"]) == 201


def test_events_come_in_order_on_a_descriptor_of_their_own(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    arguments = [
        "run",
        "--config",
        str(configuration(tmp_path / "c")),
        "--input",
        str(csv(tmp_path, TEXT + ",9\n" * 30)),
    ]
    done = start(
        *arguments,
        "--output",
        str(tmp_path / "o"),
        "--events-fd",
        str(writing),
        "--name",
        "Leute.csv",
        pass_fds=(writing,),
    )
    os.close(writing)
    with open(reading, "rb") as stream:
        events = [json.loads(line) for line in stream]
    assert (done.returncode, done.stdout) == (0, b"")
    names = [one["event"] for one in events]
    assert names[:5] == ["run.started", "input.opened", "table.found", "column.mapped", "column.mapped"]
    assert names[5:] == [*["row.rejected"] * 20, "table.finished", "run.finished"]
    assert [one["sequence"] for one in events] == list(range(1, len(events) + 1))
    assert [one["count"] for one in events if one["event"] == "row.rejected"] == list(range(1, 21))
    assert events[0]["input"]["name"] == "Leute.csv"
    table, finished = events[-2], events[-1]
    assert (table["rows_read"], table["rows_written"], table["rows_rejected"]) == (33, 3, 30)
    assert (finished["rows_read"], finished["rows_written"], finished["rows_rejected"]) == (33, 3, 30)
    assert {one["name"] for one in finished["outputs"]} == {"output.xlsx", "report.json"}
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["output.xlsx", "report.json"]


def test_events_are_limited_but_the_last_one_is_always_written(tmp_path: Path) -> None:
    _, events, _ = run_process(
        configuration(tmp_path / "c"), csv(tmp_path, TEXT + ",9\n" * 30), tmp_path / "o", "--max-events", "10"
    )
    assert len(events) == 10
    assert events[-1]["event"] == "run.finished"
    assert events[-1]["events_left_out"] == 17


def test_progress_is_reported_every_five_thousand_rows(tmp_path: Path) -> None:
    text = "Name,Age\n" + "".join(f"P{index},1\n" for index in range(11_000))
    outcome = run_here(configuration(tmp_path / "c"), csv(tmp_path, text), tmp_path / "o")
    first, second = outcome.of("progress")
    assert (first["rows_read"], second["rows_read"]) == (5000, 10_000)
    assert 0 < first["share"] <= second["share"] <= 1


@pytest.mark.parametrize(
    ("manifest", "rules", "code"),
    [
        ("name = 'x'", PEOPLE, "configuration_invalid"),
        ("name = 'x'\nengine = '1'\nsurprise = 1", PEOPLE, "configuration_invalid"),
        ("name = 'x'\nengine = '1'\n[reading]\nencoding = 'klingon'", PEOPLE, "configuration_invalid"),
        ("name = '../x'\nengine = '1'", PEOPLE, "configuration_invalid"),
        ("name = ", PEOPLE, "configuration_invalid"),
        ("name = 'x'\nengine = '2'", PEOPLE, "configuration_engine"),
        ("name = 'x'\nengine = '1'", "x = 1", "configuration_broken"),
        ("name = 'x'\nengine = '1'", "import nothing_like_this", "configuration_broken"),
        ("name = 'x'\nengine = '1'", "def (", "configuration_broken"),
        ("name = 'x'\nengine = '1'", PEOPLE + "rules.field('name')", "configuration_broken"),
        ("name = 'x'\nengine = '1'", "raise SystemExit(0)", "configuration_broken"),
    ],
)
def test_a_broken_configuration_is_refused_with_a_code(tmp_path: Path, manifest: str, rules: str, code: str) -> None:
    outcome = run_here(configuration(tmp_path / "c", rules, manifest), csv(tmp_path, TEXT), tmp_path / "o")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.exit_code) == (code, 4)


def test_modules_of_a_configuration_do_not_replace_the_standard_library(tmp_path: Path) -> None:
    folder = with_code(
        tmp_path / "c", "import colorsys, helper\nassert hasattr(colorsys, 'rgb_to_hls') and helper.here\n"
    )
    (folder / "colorsys.py").write_text("mine = True\n")
    (folder / "helper.py").write_text("here = True\n")
    assert run_here(folder, csv(tmp_path, TEXT), tmp_path / "o").error is None


def test_check_describes_a_configuration_and_version_prints_the_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = start("check", "--config", str(INVOICES))
    described = json.loads(done.stdout)
    assert (done.returncode, described["name"], len(described["fields"])) == (0, "supplier-invoices", 9)
    with modules_as_before():
        assert main(["check", "--config", str(with_code(tmp_path / "c", "print('hello')\n1 / 0\n"))]) == 4
    broken = json.loads(capsys.readouterr().out)
    assert broken["code"] == "configuration_broken"
    assert "rules.py:" in broken["message"]
    assert main(["version"]) == 0
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["version"]
    assert capsys.readouterr().out.strip() == ade_engine.__version__ == declared


@pytest.mark.parametrize("wrong", [["--max-rows", "-1"], ["--events-fd", "99"], ["--surprise"], []])
def test_wrong_arguments_exit_with_code_two_and_change_nothing(tmp_path: Path, wrong: list[str]) -> None:
    output = tmp_path / "o"
    output.mkdir()
    if not wrong:
        (output / "mine.txt").write_text("keep")
    command = ["run", "--config", str(INVOICES), "--input", str(csv(tmp_path, TEXT)), "--output", str(output), *wrong]
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert [path.name for path in output.iterdir()] == ([] if wrong else ["mine.txt"])


def test_a_closed_event_pipe_ends_the_run(tmp_path: Path) -> None:
    text = "Name,Age\n" + "".join(f"P{index},x\n" for index in range(3000))
    command = [sys.executable, "-m", "ade_engine", "run", "--config", str(configuration(tmp_path / "c"))]
    command += ["--input", str(csv(tmp_path, text)), "--output", str(tmp_path / "o")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": str(PACKAGE / "src")})
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 1
