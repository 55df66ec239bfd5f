"""holdfast workers: who is alive, and a real worker that is asked to drain."""

from __future__ import annotations

from datetime import timedelta

from tests.cli.conftest import Invoke, Shell, eventually, told
from tests.cli.test_worker import ended, has_started, submit_work
from tests.contract.alive import register

from holdfast import Holdfast


def test_a_list_says_who_is_alive_and_what_each_does(holdfast: Invoke, url: str, live: Holdfast) -> None:
    live.start()
    assert "no worker is alive" in holdfast("workers", "list", url).stderr
    register(live, "worker\x1b[31m-1", pid=4711, expires_at=live.clock.now() + timedelta(minutes=1))
    result = holdfast("workers", "list", url)
    assert "\x1b" not in result.stdout
    assert "4711" in result.stdout
    assert "0 of 1" in result.stdout
    [worker] = told(holdfast("workers", "list", url, "--json"))["items"]
    assert (worker["host"], worker["tasks"], worker["drain_at"]) == ("host-a", [], None)


def test_a_worker_process_that_is_drained_finishes_and_exits_with_0(shell: Shell) -> None:
    url = shell.environment["HOLDFAST_URL"]
    with Holdfast(url) as hf:
        run, until = submit_work(shell, shell, hf)
        # Its grace is nothing: a drain is not a shutdown, and hands nothing back.
        worker = shell.start("worker", "app:hf", HOLDFAST_SHUTDOWN_GRACE="0")
        eventually(lambda: has_started(shell))
        [info] = hf.workers.list()
        answer = shell("workers", "drain", url, info.id)
        assert (answer.returncode, answer.stdout) == (0, f"{info.id} drains: 1 running, then it ends\n")
        eventually(lambda: hf.workers.get(info.id).stopping)
        later = shell("submit", "app:hf", "letters.greet", "name=Ada").stdout.strip()
        assert worker.poll() is None
        until.touch()
        code, said = ended(worker)

        assert code == 0
        assert said.splitlines()[-1] == "drained, as it was asked to; 1 attempts were made"
        assert (hf.get(run).state, hf.get(later).state) == ("succeeded", "queued")
        assert hf.workers.list() == []
