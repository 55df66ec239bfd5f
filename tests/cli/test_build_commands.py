"""`holdfast builds`, given the URL of each kind of database."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.cli import hostile_text
from tests.cli.conftest import Invoke, Shell, json_output

from holdfast import Build, Holdfast, Run, Snapshot
from holdfast.testing import Manual


@pytest.fixture
def environment(hf: Holdfast) -> Any:
    @hf.build(name="environment")
    def environment(configuration_id: str, fingerprint: str) -> str:
        if configuration_id == "broken":
            raise ValueError(fingerprint)
        return f"/environments/{configuration_id}"

    return environment


@pytest.fixture
def ready(environment: Any, manual: Manual) -> Run[str]:
    run: Run[str] = environment.submit(configuration_id="c1", fingerprint="f" * 64)
    manual.run_all()
    return run


def test_builds_are_listed_with_their_waiting_runs_and_their_errors(
    holdfast: Invoke, url: str, hf: Holdfast, environment: Any, manual: Manual, ready: Run[str]
) -> None:
    broken = environment.submit(configuration_id="broken", fingerprint="no-such-package")
    manual.run_all()

    @hf.job(name="process")
    def process() -> None: ...

    process.using(depends_on=[environment.request(configuration_id="c2", fingerprint="f2")]).submit()
    result = holdfast("builds", "list", url)
    header, *lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert header.split() == ["ID", "STATE", "JOB", "SCOPE", "FINGERPRINT", "CREATED", "TOOK", "WAITING", "NOTE"]
    assert [line.split()[1] for line in lines] == ["queued", "failed", "ready"]
    assert lines[0].endswith(" 1"), "one run waits for the build"
    assert lines[1].split()[0] == broken.id
    assert lines[1].endswith("ValueError: no-such-package")
    assert lines[2].split()[3:5] == ["configuration_id:c1", "f" * 64]

    failed = holdfast("builds", "list", url, "--state", "failed", "--job", "environment")
    assert [line.split()[0] for line in failed.stdout.splitlines()[1:]] == [broken.id]
    paged = holdfast("builds", "list", url, "--limit", "1")
    assert "next page: --before" in paged.stderr
    assert "no matching builds" in holdfast("builds", "list", url, "--scope", "nobody").stderr


def test_a_build_is_shown_with_the_runs_that_made_it(
    holdfast: Invoke, url: str, hf: Holdfast, manual: Manual, ready: Run[str]
) -> None:
    again = hf.again(ready.id)
    manual.run_all()
    shown = holdfast("builds", "show", url, ready.id).stdout
    assert "build        environment configuration_id:c1\n" in shown
    assert "fingerprint  " + "f" * 64 in shown
    assert 'result       "/environments/c1"' in shown
    assert shown.index(again.id) < shown.index(ready.id), "the newest run must come first"

    document = json_output(holdfast("builds", "show", url, again.id, "--json"))
    assert document.keys() == Build.__dataclass_fields__.keys() - {"run_id"} | {"id", "runs"}
    assert (document["id"], document["result"]) == (again.id, "/environments/c1")
    assert [run["id"] for run in document["runs"]] == [again.id, ready.id]
    assert document["runs"][0].keys() == Snapshot.__dataclass_fields__.keys()


def test_a_build_is_invalidated_with_a_reason(holdfast: Invoke, url: str, hf: Holdfast, ready: Run[str]) -> None:
    result = holdfast("builds", "invalidate", url, ready.id, "--reason", "a package was withdrawn")
    assert result.stdout == "environment configuration_id:c1 is stale; the next run that requests it rebuilds it\n"
    [build] = json_output(holdfast("builds", "list", url, "--json"))["items"]
    assert (build["state"], build["reason"]) == ("stale", "a package was withdrawn")
    assert json_output(holdfast("builds", "invalidate", url, ready.id, "--json"))["reason"] == "a package was withdrawn"
    assert "a package was withdrawn" in holdfast("builds", "list", url).stdout
    again = holdfast("builds", "invalidate", url, ready.id, "--reason", "another reason").stdout
    assert again == "environment configuration_id:c1 was already stale: a package was withdrawn\n"


def test_a_build_is_rebuilt_at_once(holdfast: Invoke, url: str, hf: Holdfast, manual: Manual, ready: Run[str]) -> None:
    new = holdfast("builds", "rebuild", url, ready.id).stdout.strip()
    assert hf.get(new).snapshot.again_of == ready.id
    manual.run_all()
    assert json_output(holdfast("builds", "rebuild", url, new, "--json"))["again_of"] == new


def test_hostile_text_cannot_control_the_terminal(
    holdfast: Invoke, url: str, hf: Holdfast, environment: Any, manual: Manual
) -> None:
    run = environment.submit(configuration_id=hostile_text.ALL, fingerprint="f")
    manual.run_all()
    holdfast("builds", "invalidate", url, run.id, "--reason", hostile_text.ALL)
    for command in (("list", url), ("show", url, run.id)):
        assert not hostile_text.control_characters(holdfast("builds", *command).output), command


def test_a_worker_serves_the_builds_of_its_application(shell: Shell) -> None:
    with (shell.folder / "app.py").open("a") as file:
        file.write(
            "\nfrom holdfast import Context\n\n\n@hf.build()"
            "\ndef environment(fingerprint: str) -> str:\n    return 'built'\n"
            "\n\n@hf.job()\ndef use(ctx: Context) -> str:\n    return ctx.dependencies[0]\n"
            "\n\nif __name__ == '__main__':\n    use.using(depends_on=[environment.request('f')]).submit()\n"
        )
    subprocess.run([sys.executable, "app.py"], cwd=shell.folder, env=shell.environment, check=True, timeout=45)
    worked = shell("worker", "app:hf", "--drain")
    assert worked.returncode == 0
    assert "queues: builds, default" in worked.stderr
    assert "made 2 attempts" in worked.stderr
