"""The house is kept: who may ask the time, who may be random, what is never done, how large a room may be."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
import holdfast.testing

SRC = Path(holdfast.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
LINES = 400

# Where code may wait by sleeping, and why nothing else serves there.
MAY_SLEEP = {
    "store/dialects/sqlite.py": "SQLite says 'locked' at once when two processes turn WAL on, whatever its timeout",
    "worker/supervisor.py": "it kills until none is left, and a killed process that is not its child sends no signal",
    "testing/postgres.py": "a server that starts has no signal to wait for",
}
# Who may measure time without the clock, and why.
MAY_ASK_THE_TIME = {
    "clock.py": "it is the clock",
    "cli/worker.py": "how close two signals are, which are the machine's own",
    "store/database_file.py": "how long ago the locks were read, which are the machine's own",
    "store/dialects/sqlite.py": "how long it waits for the file's lock, which is the machine's own",
    "waiters.py": "how long it waits between two looks, also where the clock of a test stands still",
    "worker/guardian_process.py": "started as a script, it imports nothing of ours until it has to",
    "worker/supervisor.py": "started as a script, it imports nothing of ours",
}
MAY_BE_RANDOM = {
    "ids.py": "it is chance",
}
# Where a statement may be chosen by the dialect's name: its own room.
KNOWS_DIALECTS = ("store/",)
PRINTS = ("cli/",)

TIME = {
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "monotonic"),
    ("time", "monotonic_ns"),
    ("time", "perf_counter"),
    ("time", "clock_gettime"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}


def rooms() -> Iterator[tuple[str, ast.Module]]:
    for file in FILES:
        yield str(file.relative_to(SRC)), ast.parse(file.read_text("utf-8"))


def calls(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """(owner, name, line) of every call; the owner of a bare name is ''."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(value=ast.Name(id=owner), attr=name):
                    yield owner, name, node.lineno
                case ast.Attribute(value=ast.Attribute(attr=owner), attr=name):
                    yield owner, name, node.lineno
                case ast.Name(id=name):
                    yield "", name, node.lineno


def imported(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """(module, name) of every import; None where the module itself is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                yield node.module, alias.name


def test_only_the_clock_asks_the_time() -> None:
    guilty = [
        f"{room}:{line} {owner}.{name}"
        for room, tree in rooms()
        if room not in MAY_ASK_THE_TIME
        for owner, name, line in calls(tree)
        if (owner, name) in TIME
    ]
    guilty += [
        f"{room} imports {name} from time"
        for room, tree in rooms()
        if room not in MAY_ASK_THE_TIME
        for module, name in imported(tree)
        if module == "time" and name is not None
    ]
    assert guilty == []


def test_nothing_sleeps_but_where_nothing_else_serves() -> None:
    sleepers = {
        room for room, tree in rooms() for owner, name, _ in calls(tree) if (owner, name) in {("time", "sleep")}
    }
    assert sleepers == set(MAY_SLEEP), "list each sleep in MAY_SLEEP with its reason, or wait for a signal"


def test_nothing_uses_threads_that_belong_to_the_event_loop_or_that_the_process_waits_for() -> None:
    guilty = [
        f"{room}:{line} {name}"
        for room, tree in rooms()
        for _, name, line in calls(tree)
        if name in {"to_thread", "run_in_executor", "ThreadPoolExecutor"}
    ]
    assert guilty == [], "use holdfast.threads"


def test_only_ids_are_random() -> None:
    guilty = {
        f"{room} imports {module}"
        for room, tree in rooms()
        if room not in MAY_BE_RANDOM
        for module, name in imported(tree)
        if module.split(".")[0] in {"random", "secrets", "uuid"}
    }
    assert guilty == set()


def test_nothing_is_unpickled_or_evaluated() -> None:
    guilty = [
        f"{room} imports {module}"
        for room, tree in rooms()
        for module, _ in imported(tree)
        if module.split(".")[0] in {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
    ]
    guilty += [
        f"{room}:{line} {name}"
        for room, tree in rooms()
        for owner, name, line in calls(tree)
        if owner == "" and name in {"eval", "exec", "compile", "__import__"}
    ]
    assert guilty == []


def test_no_one_above_the_store_asks_which_dialect_it_is() -> None:
    guilty = []
    for room, tree in rooms():
        if room.startswith(KNOWS_DIALECTS):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare | ast.Match):
                subject = node.left if isinstance(node, ast.Compare) else node.subject
                text = ast.unparse(subject)
                if "dialect" in text and ("name" in text or text == "dialect"):
                    guilty.append(f"{room}:{node.lineno} {text}")
    assert guilty == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_a_room_can_be_seen_at_a_glance(file: Path) -> None:
    lines = len(file.read_text("utf-8").splitlines())
    assert lines <= LINES, f"{lines} lines: find the second noun in it and give it a room of its own"


def test_nothing_prints_but_the_command_line() -> None:
    guilty = [
        f"{room}:{line}"
        for room, tree in rooms()
        if not room.startswith(PRINTS)
        for owner, name, line in calls(tree)
        if owner == "" and name == "print"
    ]
    assert guilty == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_every_module_says_what_it_is(file: Path) -> None:
    doc = ast.get_docstring(ast.parse(file.read_text("utf-8")))
    assert doc or file.name == "__main__.py", "a module without a docstring"


@pytest.mark.parametrize("name", [*holdfast.__all__, *(f"testing.{name}" for name in holdfast.testing.__all__)])
def test_every_public_name_says_what_it_promises(name: str) -> None:
    room, _, bare = name.rpartition(".")
    found = getattr(holdfast.testing if room else holdfast, bare)
    if isinstance(found, str):
        return  # the version
    assert found.__doc__, f"{name} has no docstring"
    assert not found.__doc__.startswith(f"{bare}("), f"{name} has only the docstring that dataclass makes"
    undocumented = [
        f"{name}.{method}"
        for method, value in vars(found).items()
        if not method.startswith("_") and inspect.isfunction(value) and not inspect.getdoc(getattr(found, method))
    ]
    assert undocumented == []
