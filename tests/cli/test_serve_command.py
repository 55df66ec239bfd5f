"""`holdfast serve`, as a real process: its URL, its access and its shutdown."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.cli.conftest import Invoke, Shell, json_output, without_warnings
from tests.listing import runs_of
from tests.waiting import wait_for

from holdfast import Holdfast, InvalidSetting

PAGE = {"Accept": "text/html"}


class Served:
    """A server started with `holdfast serve`."""

    def __init__(self, process: subprocess.Popen[str], **options: object) -> None:
        self.process = process
        assert process.stdout is not None
        self.url = process.stdout.readline().strip()
        assert self.url, process.communicate()[1]
        self.base = self.url.partition("?")[0]
        found = parse_qs(urlsplit(self.url).query).get("token", [""])
        self.client = httpx.Client(base_url=self.base, timeout=20, verify=options.get("verify", True))  # type: ignore[arg-type]
        self.client.headers["Authorization"] = f"Bearer {found[0]}"

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        _, stderr = self.process.communicate(timeout=60)
        self.client.close()
        return self.process.returncode, stderr


def serve(shell: Shell, *arguments: str, **environment: str) -> Served:
    return Served(shell.start("serve", "app:hf", "--port", "0", *arguments, files=(), **environment))


def test_the_printed_url_signs_in_and_a_signal_closes_streams_and_releases_runs(shell: Shell, sqlite_url: str) -> None:
    served = serve(shell, "--worker", HOLDFAST_SHUTDOWN_GRACE="0")
    with httpx.Client(headers=PAGE, follow_redirects=True) as browser:
        page = browser.get(served.url)
        assert (page.status_code, str(page.url)) == (200, served.base)
        assert httpx.get(served.base, headers=PAGE).status_code == 303  # only the URL with the token signs in
    started = shell.folder / "started"
    served.client.post("/api/runs", json={"job": "letters.work", "args": {"started": str(started), "until": "never"}})
    beginning, ended = threading.Event(), threading.Event()

    def watch() -> None:
        with served.client.stream("GET", "/live") as answer:
            for _ in answer.iter_lines():
                beginning.set()
        ended.set()

    watching = threading.Thread(target=watch)
    watching.start()
    assert beginning.wait(60)
    wait_for(started.exists)
    code, stderr = served.stop(signal.SIGINT)
    watching.join(60)
    assert ended.is_set()
    assert code == 4, stderr
    first, last = without_warnings(stderr)
    assert "serving sqlite:////" in first
    assert "executes runs" in first
    assert last == "stopped; unfinished runs were released and no attempt was used up"
    with Holdfast(sqlite_url) as hf:
        assert [run.state for run in runs_of(hf)] == ["queued"]


def test_a_server_with_a_worker_executes_queued_runs_and_a_second_signal_stops_it_at_once(
    shell: Shell, sqlite_url: str
) -> None:
    served = serve(shell, "--worker", "-c", "2")
    started, go = shell.folder / "started", shell.folder / "until"
    answer = served.client.post(
        "/api/runs", json={"job": "letters.work", "args": {"started": str(started), "until": str(go)}}
    )
    assert answer.status_code == 201, answer.text
    wait_for(started.exists)
    served.process.send_signal(signal.SIGTERM)
    assert served.process.stderr is not None
    wait_for(lambda: not answers(served))  # it accepts no more requests and waits for the run

    def is_stopped() -> bool:
        served.process.send_signal(signal.SIGTERM)  # signals within two seconds count as one
        return served.process.poll() is not None

    wait_for(is_stopped)
    code, stderr = served.ended()
    assert code == 5
    assert "stopped at once" in stderr


def answers(served: Served) -> bool:
    try:
        return served.client.get("/healthz").is_success
    except httpx.TransportError:
        return False


OWN = """
from app import hf
from holdfast.web import Site, is_open

site = Site(hf, title="Records", at="/holdfast")
papers = site.resource("/papers")

@papers.get("")
@is_open
def get_papers() -> list[str]:
    return ["a paper"]

site.include(papers)
"""


def test_a_site_with_pages_of_its_own_is_served_with_its_worker(shell: Shell, sqlite_url: str) -> None:
    (shell.folder / "own.py").write_text(OWN)
    served = Served(shell.start("serve", "own:site", "--port", "0", "--worker"))
    assert served.client.get("/papers").json() == ["a paper"]
    served.client.post("/holdfast/api/runs", json={"job": "letters.greet", "args": {"name": "Ada"}}).raise_for_status()
    with Holdfast(sqlite_url) as hf:
        wait_for(lambda: [run.state for run in runs_of(hf)] == ["succeeded"])
    code, stderr = served.stop()
    assert code == 0, stderr


def test_a_database_url_is_served_over_tls_and_a_fixed_token_is_not_printed(shell: Shell, sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        hf.start()
    certify(shell.folder)
    token = "the-fixed-admin-token"
    process = shell.start(
        *("serve", sqlite_url, "--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"),
        HOLDFAST_ADMIN_TOKEN=token,
    )
    served = Served(process, verify=ssl.create_default_context(cafile=shell.folder / "cert.pem"))
    assert served.url == served.base
    assert served.base.startswith("https://127.0.0.1:")
    served.client.headers["Authorization"] = f"Bearer {token}"
    assert served.client.get("/api/runs").status_code == 200
    assert served.client.get("/api/runs", headers={"Host": "evil.example"}).status_code == 421
    cookie = served.client.post("/sign-in", data={"token": token}).headers["set-cookie"]
    assert cookie.startswith("__Host-holdfast_")
    assert "; Secure" in cookie
    code, stderr = served.stop()
    assert code == 0
    assert "no worker in this process" in stderr
    assert stderr.endswith("stopped\n")
    assert token not in stderr


def certify(folder: Path) -> None:
    """Write a self-signed certificate for 127.0.0.1."""
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = "-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    made = subprocess.run(
        ["openssl", *options.split(), *files.split()], cwd=folder, capture_output=True, check=False, timeout=30
    )
    assert made.returncode == 0, made.stderr


def test_a_port_in_use_is_reported(inside: Invoke, sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = inside("serve", "app:hf", "--port", str(port))
    assert refused.exit_code == 7
    assert f"address_taken: 127.0.0.1 port {port}: another process uses this port" in refused.stderr


def test_an_inherited_socket_is_served_and_stays_open_for_its_owner(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for _ in range(2):  # a second server can use the same socket
            process = shell.start("serve", "app:hf", "--fd", str(listening.fileno()), files=[listening.fileno()])
            served = Served(process)
            assert served.base == f"http://127.0.0.1:{listening.getsockname()[1]}/"
            assert served.client.get("/api/runs").status_code == 200
            code, stderr = served.stop()
            assert code == 0, stderr


def test_a_file_descriptor_without_a_listening_socket_is_refused(inside: Invoke, tmp_path: Path) -> None:
    with socket.socket() as silent, (tmp_path / "app.py").open() as file:
        silent.bind(("127.0.0.1", 0))
        for fd, why in ((file.fileno(), "is not a socket"), (silent.fileno(), "does not listen")):
            refused = inside("serve", "app:hf", "--fd", str(fd))
            assert refused.exit_code == 2
            assert refused.stderr.startswith(f"holdfast: not_listening: file descriptor {fd} is ")
            assert why in refused.stderr


def test_settings_and_doctor_do_not_show_the_token(
    inside: Invoke, monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    monkeypatch.setenv("HOLDFAST_ADMIN_TOKEN", "the-fixed-admin-token")
    with Holdfast(sqlite_url) as hf:
        assert "the-fixed-admin-token" not in f"{hf.settings} {hf.settings!r} {hf.settings.model_dump()}"
    assert "the-fixed-admin-token" not in str(json_output(inside("doctor", "app:hf", "--json")))
    with pytest.raises(InvalidSetting, match="at least 16 characters"):
        Holdfast(sqlite_url, admin_token="short")
