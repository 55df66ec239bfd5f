"""An invalid command prints one line with an error code, sets its exit code and changes nothing."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from tests.cli import hostile_text
from tests.cli.conftest import APP
from tests.databases import sqlite
from tests.sample_app import sample_app

from holdfast.cli import main
from holdfast.testing import Manual

UNGUARDED = "from holdfast import Holdfast\n\nhf = Holdfast()\n\n\n@hf.job()\ndef greet() -> None: ...\n\n\n{line}\n"
FILES = {
    "app.py": APP,
    "broken.py": "import sys\n\n1 / 0\n",
    "exits.py": "raise SystemExit(0)\n",
    "json.py": "hf = 1\n",
    "unset.py": "from holdfast import Holdfast\nhf = Holdfast(lease=0)\n",
    "slipped.py": "from holdfast import Holdfast\n\nhf = Holdfast()\nhf.job(priority='high')\n",
    "unfinished.py": "import os\n\ndef (\n",
    "submits.py": UNGUARDED.format(line="greet.submit()"),
    "starts.py": UNGUARDED.format(line="hf.worker().start()"),
    "calls.py": UNGUARDED.format(line="greet()"),
}


class World:
    """A folder with valid and broken applications, and a database with sample data.

    names   placeholders in the commands below, and the values that replace them
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder / 'work.db'}"
        for name, text in FILES.items():
            (folder / name).write_text(text)
        with sample_app(folder) as hf:
            manual = Manual(hf)
            manual.schedule()
            done = hf.submit("letters.greet", name="Ada")
            film = hf.submit("film", text="one two")
            hf.submit("environments.install", package="p", fingerprint="f")
            kept = hf.submit("letters.process", document="a")
            manual.run_all()
            for name in ("mine.twice", "yours.twice"):
                hf.job(name=name)(lambda: None).submit()
            hf.tokens.add("ada")
            hf.queues.limit("full", max_queued=3)
            self.names = {
                "RUN": done.id,
                "KEPT": kept.id,
                "PIPELINE": film.id,
                "STAGE": hf.pipelines.show(film.id).stages[0].run_id,
                "SEVERAL": done.id[:6],
                "URL": self.url,
            }

    def __call__(self, line: str) -> tuple[int, str, str]:
        """Run a command line; return its exit code, standard output and standard error."""
        for name, value in self.names.items():
            line = line.replace(name, value)
        result = CliRunner().invoke(main, shlex.split(line))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout, result.stderr

    def rows(self) -> list[str]:
        with contextlib.closing(sqlite.connect(self.url.removeprefix("sqlite:///"))) as connection:
            return list(connection.iterdump())

    def files(self) -> list[str]:
        return sorted(name for name in os.listdir(self.folder) if name != "__pycache__")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        made = World(tmp_path_factory.mktemp("refusals"))
        patch.chdir(made.folder)
        patch.setenv("HOLDFAST_URL", made.url)
        patch.setattr(sys, "path", [*sys.path])
        yield made
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(made.folder)):
            del sys.modules[name]


class Refusal(NamedTuple):
    line: str
    exit_code: int
    code: str
    says: str = ""


TABLE = [
    # The command line itself.
    Refusal("nothing", 2, "usage", "--help')"),
    Refusal("runs nothing", 2, "usage", "--help')"),
    Refusal("runs list", 2, "usage", "--help')"),
    Refusal("runs list --nothing", 2, "usage", "--help')"),
    Refusal(f"runs list URL --state '{hostile_text.ESCAPE}'", 2, "usage", "--help')"),
    Refusal("runs list URL --limit 0", 2, "usage", "--help')"),
    Refusal("migrate URL --from 1", 2, "usage", "--help')"),
    Refusal("worker app:hf too much", 2, "usage", "--help')"),
    # The application or the database.
    Refusal("worker nothing:hf", 2, "cannot_load"),
    Refusal("worker app", 2, "cannot_load"),
    Refusal("worker app:nothing", 2, "cannot_load"),
    Refusal("worker app:other", 2, "cannot_load"),
    Refusal("worker nothing.py:hf", 2, "cannot_load"),
    Refusal("worker URL", 2, "cannot_load"),
    Refusal("worker broken:hf", 2, "cannot_load", "/broken.py line 3): ZeroDivisionError: division by zero"),
    Refusal("worker exits:hf", 2, "cannot_load"),
    Refusal("worker json.py:hf", 2, "cannot_load"),
    Refusal("worker unset:hf", 2, "invalid_setting"),
    Refusal("runs list slipped:hf", 2, "cannot_load", "/slipped.py line 4): "),
    Refusal("runs list unfinished:hf", 2, "cannot_load", "/unfinished.py line 3): "),
    *(
        Refusal(command, 2, "not_guarded", f"/{module}.py line 10 ")
        for module in ("submits", "starts", "calls")
        for command in (f"worker {module}:hf --drain", f"submit {module}:hf greet")
    ),
    *(
        Refusal(f"{command} sqlite:///typo.db", 6, "store_unavailable", "there is no database file ")
        for command in ("runs list", "verify", "doctor")
    ),
    Refusal("runs list postgresql://me:hunter2@127.0.0.1:1/x", 6, "store_unavailable"),
    Refusal("runs list 'oracle://me:hunter2@127.0.0.1:1/x?password=hunter2'", 2, "invalid_setting"),
    Refusal("prune URL", 2, "cannot_load", "needs the application's code"),
    # holdfast worker, holdfast serve.
    Refusal("worker app:hf -q ,", 2, "usage"),
    Refusal("worker app:hf -c 0", 2, "usage"),
    Refusal("worker app:hf --log-level loud", 2, "usage"),
    *(
        Refusal(f"serve app:hf --host {host}", 2, "unsafe_address", f"other machines can reach {host}")
        for host in ("0.0.0.0", "::", "192.0.2.1", "example.com")
    ),
    Refusal("serve app:hf --host 0.0.0.0", 2, "unsafe_address", "--tls-cert"),
    Refusal("serve app:hf --host 0.0.0.0", 2, "unsafe_address", "--insecure"),
    Refusal("serve app:hf -c 2", 2, "usage", "need --worker"),
    Refusal("serve app:hf --tls-key app.py", 2, "usage", "add the certificate"),
    Refusal("serve app:hf --tls-cert app.py", 2, "invalid_setting", "can't load the certificate"),
    Refusal("serve app:hf --port 70000", 2, "usage", "--port"),
    Refusal("serve app:hf --fd 3 --port 8700", 2, "usage", "the socket already has an address"),
    Refusal("serve http://127.0.0.1:1", 2, "cannot_load"),
    # holdfast submit.
    Refusal("submit app:hf nothing", 3, "unknown_job"),
    Refusal("submit app:hf greet_too", 2, "usage"),
    Refusal("submit app:hf greet name", 2, "usage"),
    Refusal("submit app:hf greet =x", 2, "usage"),
    Refusal("submit app:hf greet name=a name=b", 2, "usage"),
    Refusal("submit app:hf greet name:={", 2, "usage"),
    Refusal("submit app:hf greet --json-args [1]", 2, "usage"),
    Refusal("submit app:hf greet --json-args {} name=a", 2, "usage"),
    *(
        Refusal(f"submit app:hf greet --json-args @{file}", 2, "usage", "--json-args")
        for file in ("nothing.json", ".", "app.py")
    ),
    Refusal("submit app:hf greet name=a --delay soon", 2, "usage"),
    Refusal("submit app:hf greet name=a --tag b", 2, "usage"),
    Refusal("""submit app:hf greet --json-args '{"name": "a", "name\\u0000": 1}'""", 2, "invalid_arguments"),
    Refusal("submit app:hf letters.greet times=2", 2, "invalid_arguments"),
    Refusal("submit app:hf letters.greet name=a times=many", 2, "invalid_arguments"),
    Refusal("submit app:hf letters.greet name=a other=b", 2, "invalid_arguments"),
    Refusal("submit app:hf letters.greet name=a --priority 99999999999", 2, "invalid_policy"),
    Refusal("submit app:hf letters.greet name=a --key ''", 2, "invalid_arguments"),
    *(
        Refusal(line, 1, "only_from_code", "can start runs of letters.process; start one at /documents")
        for line in ("submit app:hf process document=a", "runs again app:hf KEPT", "runs again URL KEPT")
    ),
    # Runs, pipelines, builds, artifacts.
    *(
        Refusal(
            f"runs {command} URL 'no{hostile_text.ESCAPE}[red]'", 3, "run_not_found", "no\\x1b[31mred\\x1b[0m[red]\n"
        )
        for command in ("show", "why", "follow", "cancel", "again")
    ),
    *(Refusal(f"runs show URL {one}", 3, "run_not_found", one) for one in ("0", "zzzz", "%%%%", "____", "01m2…")),
    Refusal("runs cancel URL SEVERAL", 2, "usage", "matches several runs: "),
    Refusal("runs list URL --parent nothing", 3, "run_not_found"),
    Refusal("runs list URL --job twice", 2, "usage", "'twice' may be mine.twice or yours.twice; write the full name"),
    Refusal("pipelines show URL STAGE", 3, "pipeline_not_found"),
    Refusal("pipelines show URL nothing", 3, "pipeline_not_found"),
    Refusal("pipelines rerun URL PIPELINE --from nowhere", 2, "invalid_arguments"),
    *(
        Refusal(f"builds {command} URL {one}", 3, "build_not_found")
        for command in ("show", "invalidate")
        for one in ("RUN", "nothing")
    ),
    Refusal("artifacts get app:hf RUN other -o got", 3, "artifact_not_found", "has no artifact 'other'"),
    Refusal("artifacts get app:hf RUN letter.txt -o nosuchdir/a.txt", 2, "usage", "nosuchdir/a.txt"),
    # Queues, workers, schedules, tokens.
    Refusal("queues limit URL full", 2, "usage"),
    Refusal("queues limit URL full --max-queued many", 2, "usage"),
    Refusal("queues limit URL full --max-queued -1", 2, "invalid_policy"),
    Refusal("queues limit URL '*' --concurrency 2", 2, "invalid_policy"),
    Refusal("workers drain URL no-one", 3, "worker_not_found"),
    *(
        Refusal(f"schedules trigger URL letters.daily {slot}", 2, code, says)
        for slot, code, says in (
            ("2026-01-01T00:00:00", "usage", "has no time zone"),
            ("tomorrow", "usage", "is not a time"),
            ("2199-01-01T00:00:00Z", "invalid_policy", "scheduled_for must be between 1970 and a year from now"),
        )
    ),
    *(
        Refusal(f"schedules {words.format(name)}", 3, "schedule_not_found", says)
        for words in ("slots URL {}", "pause URL {}", "resume URL {}", "trigger URL {} now")
        for name, says in (("nothing", ""), ("letters.dialy", "; did you mean letters.daily?\n"))
    ),
    Refusal("tokens remove URL nobody", 3, "token_not_found"),
    Refusal("tokens add URL ada", 1, "token_exists"),
    Refusal("tokens add URL bob --role king", 2, "usage"),
    Refusal("tokens add URL bob --expires soon", 2, "usage"),
    Refusal("tokens add URL ''", 2, "invalid_arguments"),
]


@pytest.mark.contract("S4")
@pytest.mark.parametrize("refusal", TABLE, ids=[ascii(refusal.line) for refusal in TABLE])
def test_an_invalid_command_prints_one_line_with_its_code_and_changes_nothing(world: World, refusal: Refusal) -> None:
    rows, files = world.rows(), world.files()
    exit_code, stdout, stderr = world(refusal.line)
    assert (exit_code, stdout, stderr.count("\n")) == (refusal.exit_code, "", 1), stderr
    assert stderr.startswith(f"holdfast: {refusal.code}: ")
    assert refusal.says in stderr
    assert "hunter2" not in stderr, "the message shows a password"
    assert not hostile_text.control_characters(stderr)
    assert (world.rows(), world.files()) == (rows, files)
