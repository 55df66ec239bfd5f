"""Starts Python programs faster: forks them from a process that has already imported Holdfast.

    test ──request──▶ template ──fork──▶ short-lived child ──fork──▶ the program

The program is a real process and a child of the test: it has its own pid, files, environment and exit code. Importing
Holdfast is most of the work of a short command, and hundreds of tests start one. Tests of the start-up itself use
`subprocess` instead.

The short-lived child ends at once, and Linux then makes the program a child of the test process, which has asked for
that (PR_SET_CHILD_SUBREAPER). Without Linux, or if a program needs an interpreter with other start-up settings, the
program is started as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

PRELOADED = (
    "holdfast.cli.main",
    "holdfast.cli.worker",
    "holdfast.cli.runs",
    "holdfast.cli.submit",
    "holdfast.app",
    "holdfast.jobs.submitter",
    "holdfast.runs.submit",
    "holdfast.operate.run_details",
    "holdfast.store.dialects.postgres",
    "holdfast.store.dialects.sqlite",
    "holdfast.worker.worker",
    "holdfast.web.asgi",
    "holdfast.web.api",
    "holdfast.web.dashboard",
    "holdfast.web.server",
    "psycopg",
    "sqlalchemy",
    "uvicorn",
)
PR_SET_CHILD_SUBREAPER = 36
LENGTH = struct.Struct("!I")
# The interpreter and some modules read these variables only once, when they start.
READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "HOLDFAST_SQLITE_MODULE", "LD_", "OTEL_", "OPENBLAS")
HANDLED = ("PYTHONPATH", "PYTHONWARNINGS", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")


if TYPE_CHECKING:
    PythonProcess = subprocess.Popen
else:

    class PythonProcess(subprocess.Popen):
        """`subprocess.Popen` of `[sys.executable, …]`, forked from the template if that makes no difference."""

        def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, *others: Any) -> None:
            pass_fds, cwd, env, *_, stdin, _, _, stdout, _, stderr = others[:12]
            standard = {target: fd for target, fd in enumerate((stdin, stdout, stderr)) if fd != -1}
            environment = os.environ if env is None else env
            usual = [preexec_fn, executable, *others[12:]] == [None, None, True, None, None, None, -1, False, -1]
            if not (usual and _can_fork(args, environment) and not any(map(os.isatty, standard.values()))):
                super()._execute_child(args, executable, preexec_fn, close_fds, *others)
                return
            files = standard | {fd: fd for fd in pass_fds}
            request = {
                "arguments": [os.fsdecode(one) for one in args],
                "cwd": os.getcwd() if cwd is None else os.fspath(cwd),
                "environment": dict(environment),
                "targets": list(files),
            }
            self.pid = _template().start(request, list(files.values()))
            self._child_created = True
            self._close_pipe_fds(*others[6:12])


def run(args: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` with text output that is captured."""
    timeout, check = options.pop("timeout", None), options.pop("check", False)
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with PythonProcess(args, **(pipes | options)) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, errors)
    if check:
        done.check_returncode()
    return done


def _can_fork(args: Any, environment: Mapping[str, str]) -> bool:
    """Whether the program is `-m MODULE …`, `-W error FILE …` or `FILE …`, with the template's start-up settings."""
    if isinstance(args, (str, bytes)) or not sys.platform.startswith("linux"):
        return False
    given = [os.fsdecode(one) for one in args]
    rest = given[3:] if given[1:3] == ["-W", "error"] else given[1:]
    known = given[0] == sys.executable and rest and (rest[0] == "-m" or not rest[0].startswith("-"))
    return bool(known) and _start_settings(environment) == _at_start


def _start_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in environment if name.startswith(READ_AT_START) and name not in HANDLED}


_at_start = _start_settings(os.environ)


class _Template:
    """The process that forks the programs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._libc = ctypes.CDLL(None, use_errno=True)
        atexit.register(self.close)

    def close(self) -> None:
        """End the template: it exits when its socket is closed."""
        self._socket.close()
        self._process.wait(timeout=60)

    def start(self, request: Mapping[str, Any], files: Sequence[int]) -> int:
        """Start a program with these open files, and return its pid."""
        text = json.dumps(request).encode()
        with self._lock:
            self._adopt(1)
            socket.send_fds(self._socket, [LENGTH.pack(len(text))], files)
            self._socket.sendall(text)
            answer = self._socket.recv(LENGTH.size)
            self._adopt(0)  # no other process whose parent has ended becomes a child of the tests
        assert len(answer) == LENGTH.size, "the template of the tests' processes has ended"
        pid: int = LENGTH.unpack(answer)[0]
        return pid

    def _adopt(self, on: int) -> None:
        self._libc.prctl(PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)


_started: list[_Template] = []
_starting = threading.Lock()


def _template() -> _Template:
    with _starting:
        if not _started:
            _started.append(_Template())
        return _started[0]


def serve(connection: socket.socket) -> dict[str, Any]:
    """Fork a program for each request until the test process ends. Returns only in a program, with its request."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        head, files, _, _ = socket.recv_fds(connection, LENGTH.size, 16)
        if not head:
            os._exit(0)
        text = b""
        while len(text) < LENGTH.unpack(head)[0]:
            text += connection.recv(LENGTH.unpack(head)[0] - len(text))
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            own = os.getpid()
            program = os.fork()
            if program == 0:
                os.close(reading)
                os.close(writing)
                connection.close()
                while os.getppid() == own:
                    time.sleep(0.0005)
                request: dict[str, Any] = json.loads(text)
                _become(request, files)
                return request
            os.write(writing, LENGTH.pack(program))
            os._exit(0)
        os.waitpid(between, 0)
        connection.sendall(os.read(reading, LENGTH.size))
        for fd in (reading, writing, *files):
            os.close(fd)


def _become(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Take the files, the folder and the environment of the request, as a new interpreter would."""
    # Move all of them out of the way first: a file may have the number that another one needs.
    moved = [os.dup(fd) for fd in files]
    high = [os.dup2(fd, 200 + number) for number, fd in enumerate(moved)]
    os.closerange(3, 200)
    for fd, target in zip(high, request["targets"], strict=True):
        os.dup2(fd, target)
        os.set_inheritable(target, target < 3)
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    python_path = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    arguments = request["arguments"]
    sys.orig_argv[:] = arguments
    given = arguments[1:]
    sys.warnoptions[:] = [one for one in os.environ.get("PYTHONWARNINGS", "").split(",") if one]
    if given[:2] == ["-W", "error"]:
        sys.warnoptions.append("error")
        given = given[2:]
    warnings.resetwarnings()
    for action, category in _DEFAULT_WARNINGS:
        warnings.simplefilter(action, category)
    for option in sys.warnoptions:
        warnings._setoption(option)  # type: ignore[attr-defined]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    _open_standard_streams(unbuffered=bool(os.environ.get("PYTHONUNBUFFERED")))
    if given[0] == "-m":
        sys.argv[:] = given[1:]
        first = os.getcwd()
    else:
        sys.argv[:] = given
        first = os.path.dirname(os.path.realpath(given[0]))
    sys.path[:] = [first, *python_path, *_OWN_PATH]
    importlib.invalidate_caches()
    sys.path_importer_cache.clear()
    request["arguments"][:] = given


def _open_standard_streams(*, unbuffered: bool) -> None:
    def stream(fd: int, mode: str, **options: Any) -> io.TextIOWrapper:
        return io.TextIOWrapper(open(fd, mode, closefd=False), encoding="utf-8", **options)

    sys.stdin = sys.__stdin__ = stream(0, "rb")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = stream(1, "wb", write_through=unbuffered)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = stream(  # type: ignore[misc]
        2, "wb", errors="backslashreplace", line_buffering=True, write_through=unbuffered
    )


_DEFAULT_WARNINGS: Any = (
    ("ignore", ResourceWarning),
    ("ignore", ImportWarning),
    ("ignore", PendingDeprecationWarning),
    ("ignore", DeprecationWarning),
)
_OWN_PATH = [one for one in sys.path[1:] if one not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]

if __name__ == "__main__":
    taken = serve(socket.socket(fileno=int(sys.argv[1])))["arguments"]
    if taken[0] == "-m":
        runpy.run_module(taken[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(os.path.abspath(taken[0]), run_name="__main__")
