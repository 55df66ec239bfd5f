"""The shell completes commands, options, and the names in a TARGET."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, Shell

from holdfast import Holdfast

BASH = shutil.which("bash")
IN_BASH = """
source <(holdfast completion bash)
for line in "$@"; do
    COMP_LINE=$line COMP_POINT=${#line}
    _holdfast_completion holdfast 2>/dev/null
    echo "${COMPREPLY[@]}"
done
"""
Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(inside: Invoke, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """The completions that bash gets for the end of a line."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_HOLDFAST_COMPLETE", "bash_complete")
        monkeypatch.setenv("HOLDFAST_LINE", line)
        return [row.partition(",")[2] for row in inside().stdout.splitlines() if row]

    return complete


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("holdfast run", ["runs"]),
        ("holdfast submit app:hf greet --fol", ["--follow"]),
        ("holdfast runs list ap", ["app:hf", "app:empty"]),
        ("holdfast runs list app:h", ["hf"]),  # bash treats the text after a colon as a separate word
        ("holdfast submit app:hf letters.g", ["letters.greet"]),
        ("holdfast submit app:hf 'mine.", ["mine.greet_too"]),
        ("holdfast runs list app:hf --state su", ["succeeded"]),
        ("holdfast submit nothing:hf letters.g", []),
        ("holdfast runs show sqlite:///nothing.db 0", []),
    ],
)
def test_completions_match_the_commands_and_options(complete: Complete, line: str, offered: list[str]) -> None:
    assert complete(line) == offered


def test_runs_queues_and_tokens_of_a_target_are_completed(complete: Complete, sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        hf.tokens.add("ada")
        hf.queues.pause("mail")
        run = hf.job(name="greet", queue="letters")(lambda: None).submit()
    assert complete(f"holdfast runs show app:hf {run.id[:5]}") == [run.id]
    assert complete("holdfast queues resume app:hf ") == ["default", "letters", "mail", "nowhere", "risky", "small"]
    assert complete("holdfast tokens remove app:hf a") == ["ada"]
    for line in (
        "artifacts list app:hf",
        "runs follow app:hf",
        "runs list app:hf --parent",
        "runs list app:hf --before",
    ):
        assert complete(f"holdfast {line} {run.id[:5]}") == [run.id], line
    for line in ("runs list app:hf --queue", "submit app:hf letters.greet --queue", "worker app:hf -q"):
        assert complete(f"holdfast {line} le") == ["letters"], line


@pytest.mark.skipif(BASH is None, reason="no bash: it is not installed")
def test_bash_itself_completes(shell: Shell) -> None:
    assert BASH is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [BASH, "--norc", "-c", IN_BASH, "bash", "holdfast runs f", "holdfast submit app:hf letters.g"],
        cwd=shell.folder,
        env=shell.environment | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=45,
        check=True,
    )
    assert done.stdout.splitlines() == ["follow", "letters.greet"]


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_every_completion_script_calls_the_command(holdfast: Invoke, shell_name: str) -> None:
    done = holdfast("completion", shell_name)
    assert done.exit_code == 0
    assert f"_HOLDFAST_COMPLETE={shell_name}_complete" in done.stdout


@pytest.mark.parametrize(
    ("name", "offered"), [("zsh", ["plain", "letters.greet"]), ("fish", ["plain,letters.greet\ta job"])]
)
def test_zsh_and_fish_complete_jobs_too(
    inside: Invoke, monkeypatch: pytest.MonkeyPatch, name: str, offered: list[str]
) -> None:
    monkeypatch.setenv("_HOLDFAST_COMPLETE", f"{name}_complete")
    monkeypatch.setenv("COMP_WORDS", "holdfast submit app:hf letters.gr")
    monkeypatch.setenv("COMP_CWORD", "3" if name == "zsh" else "letters.gr")
    assert inside().stdout.splitlines()[: len(offered)] == offered


def test_output_of_an_application_at_import_does_not_disturb_completion(shell: Shell, complete: Complete) -> None:
    app = shell.folder / "app.py"
    app.write_text(app.read_text() + "\nprint('plain,hello')\n")
    offered = complete("holdfast submit app:hf ")
    assert "letters.greet" in offered
    assert "hello" not in offered
