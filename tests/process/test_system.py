"""./run as a whole: it starts, shows, checks and stops everything, and leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from system import ports, registry
from system.__main__ import main
from system.folder import Folder
from tests.listing import runs_of
from tests.process.support import descendants, gone, outside_clients
from tests.waiting import wait_for

from holdfast import Holdfast

ROOT = Path(__file__).parent.parent.parent
FIVE = {"ade", "dailybrief", "extraction", "factory", "records"}


class System:
    """`./run` in a folder of its own; `printed` is its output so far."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.printed = folder, ""
        port = str(10_000 + os.getpid() % 20_000)
        environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_ADMIN_TOKEN"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "system", "--folder", str(folder), "--port", port, *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.tree: list[int] = []

    def wait_for_line(self, words: str) -> str:
        """Read the output up to the next line with these words, and return that line."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if words in line:
                self.tree = sorted({*self.tree, *descendants(self.process.pid)})
                return line
        raise AssertionError(f"./run ended without printing {words!r}: {self.printed}")

    def wait_for_end(self, *, within: float = 90) -> int:
        """Wait until ./run and all of its processes have ended; return the exit code."""
        rest, _ = self.process.communicate(timeout=within)
        self.printed += rest
        wait_for(lambda: all(map(gone, self.tree)), what=f"the processes {self.tree} have ended")
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        for pid in self.tree:
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Callable[..., System]]:
    started: list[System] = []

    def start(*arguments: str) -> System:
        started.append(System(tmp_path / "system", *arguments))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.mark.contract("S6")
@pytest.mark.timeout(400)
def test_check_verifies_every_application_over_http_and_leaves_a_consistent_database(
    system: Callable[..., System],
) -> None:
    checked = system("--check")
    checked.wait_for_line("processes are up")
    assert len(checked.tree) > 2 * len(registry.names())
    with outside_clients(checked.folder):  # other SQLite clients that read, write and back up the database
        assert checked.wait_for_end(within=300) == 0, checked.printed
    rows = re.findall(r"^(\w+) +(.+?)  +(ok|FAILED) +[\d.]+$", checked.printed, flags=re.MULTILINE)
    assert {result for _, _, result in rows} == {"ok"}
    assert {application for application, _, _ in rows} == {"system", *registry.names()} > FIVE
    assert "every run is in exactly one place" in checked.printed


def test_a_failed_check_prints_the_reason_and_keeps_the_folder(
    system: Callable[..., System], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUR_INTERVAL", "soon")
    checked = system("tour", "--check")
    assert checked.wait_for_end() == 1, checked.printed
    assert "submitter ended with exit code 1: ValueError: could not convert string to float: 'soon'" in checked.printed
    assert str(checked.folder) in checked.printed
    assert (checked.folder / "logs" / "tour.submitter.log").exists()


def test_the_printed_url_opens_the_start_page_signed_in_and_ctrl_c_stops_everything_in_order(
    system: Callable[..., System],
) -> None:
    running = system("tour")
    url = running.wait_for_line("open ").split()[1]
    running.wait_for_line("tour: up")
    with httpx.Client(follow_redirects=True, headers={"Accept": "text/html"}) as browser:
        page = browser.get(url)
        assert page.status_code == 200, page.text
        assert "token" not in str(page.url)
        assert "Submits small jobs that show each feature" in page.text
        assert browser.get(page.url.join("/api/jobs")).status_code == 200
        assert 'href="/start"' in browser.get(page.url.join("/")).text
    assert httpx.get(page.url, headers={"Accept": "application/json"}).status_code == 401

    token = url.partition("token=")[2]
    for pid in running.tree:
        assert token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()

    with Holdfast(Folder(running.folder).url) as hf:
        wait_for(lambda: "succeeded" in {run.state for run in runs_of(hf)}, at_most=60, what="a run has succeeded")
    running.process.send_signal(signal.SIGINT)
    assert running.wait_for_end() == 0, running.printed
    assert "stopping; Ctrl-C again stops at once" in running.printed
    assert re.search(r"stopped after \d+ s; runs: .*succeeded", running.printed), running.printed
    log = (running.folder / "logs" / "system.worker.log").read_text()
    assert "stopped; all runs had finished" in log or "were released" in log
    with Holdfast(Folder(running.folder).url) as hf:
        assert hf.verify() == []
        assert not [run for run in runs_of(hf) if run.state == "running"]


def test_every_process_ends_when_the_supervisor_is_killed(system: Callable[..., System]) -> None:
    running = system("tour")
    running.wait_for_line("tour: up")
    assert len(running.tree) >= 3
    running.process.kill()
    assert running.wait_for_end() == -signal.SIGKILL


def test_a_dead_worker_is_restarted_and_a_second_ctrl_c_stops_at_once(system: Callable[..., System]) -> None:
    running = system("tour")
    running.wait_for_line("tour: up")
    worker = next(pid for pid in running.tree if b"system.all_jobs:hf" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(worker, signal.SIGKILL)
    assert "worker was ended by SIGKILL" in running.wait_for_line("tour: starting (")
    running.wait_for_line("tour: up")
    restarted = next(pid for pid in running.tree if pid != worker and _is_worker(pid))
    os.kill(restarted, signal.SIGSTOP)  # it can't react to SIGTERM
    running.process.send_signal(signal.SIGINT)
    running.wait_for_line("stopping")
    running.process.send_signal(signal.SIGINT)
    assert running.wait_for_end() == 130
    assert "stopped at once" in running.printed


def _is_worker(pid: int) -> bool:
    return not gone(pid) and b"system.all_jobs:hf" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_an_unknown_application_is_refused_with_a_list_of_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    names = ", ".join(registry.names())
    assert capsys.readouterr().err == f"run: no application is named 'nothing'; choose from: {names}\n"


def test_only_one_system_at_a_time_uses_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used = Folder(tmp_path)
    used.acquire(fresh=False)
    try:
        assert main(["tour", "--folder", str(tmp_path)]) == 2
    finally:
        used.release()
    assert f"run: another ./run uses {tmp_path}" in capsys.readouterr().err


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["tour", "--folder", str(tmp_path), "--fresh"]) == 2
    assert "contains other files" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_port_in_use_is_skipped() -> None:
    with socket.create_server((ports.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with next(ports.listening(port)) as found:
            assert found.getsockname()[1] > port
