"""`holdfast workers`: listing workers, and draining a real one."""

from __future__ import annotations

from datetime import timedelta

from tests.cli.conftest import Invoke, Shell, json_output
from tests.cli.test_worker_command import ended, has_started, submit_work
from tests.contract.helpers.workers import register
from tests.waiting import wait_for

from holdfast import Holdfast


def test_workers_are_listed_with_their_status_and_their_runs(holdfast: Invoke, url: str, live: Holdfast) -> None:
    live.start()
    assert "no live workers" in holdfast("workers", "list", url).stderr
    register(live, "worker\x1b[31m-1", pid=4711, expires_at=live.clock.now() + timedelta(minutes=1))
    result = holdfast("workers", "list", url)
    assert "\x1b" not in result.stdout
    assert "4711" in result.stdout
    assert "0 of 1" in result.stdout
    [worker] = json_output(holdfast("workers", "list", url, "--json"))["items"]
    assert (worker["host"], worker["active_runs"], worker["drain_requested_at"]) == ("host-a", [], None)


def test_a_drained_worker_process_finishes_its_runs_and_exits_with_0(shell: Shell, inside: Invoke) -> None:
    url = shell.environment["HOLDFAST_URL"]
    with Holdfast(url) as hf:
        run, go = submit_work(shell, inside, hf)
        # With a grace of 0 a shutdown would release the run at once; a drain lets it finish.
        worker = shell.start("worker", "app:hf", HOLDFAST_SHUTDOWN_GRACE="0")
        wait_for(lambda: has_started(shell))
        [info] = hf.workers.list()
        answer = inside("workers", "drain", url, info.id)
        assert (answer.exit_code, answer.stdout) == (0, f"{info.id} is draining: it exits after its 1 run\n")
        wait_for(lambda: hf.workers.get(info.id).stopping)
        later = inside("submit", "app:hf", "letters.greet", "name=Ada").stdout.strip()
        assert worker.poll() is None
        go.touch()
        code, stderr = ended(worker)

        assert code == 0
        assert stderr.splitlines()[-1] == "drained on request; made 1 attempt"
        assert (hf.get(run).state, hf.get(later).state) == ("succeeded", "queued")
        assert hf.workers.list() == []
