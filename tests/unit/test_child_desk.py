"""The desk in a run's own process, with a worker at the other end that says what a test wants."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from holdfast import TooLarge
from holdfast.worker.isolation import messages
from holdfast.worker.isolation.child import RemoteRunServices
from holdfast.worker.isolation.supervisor import Lines, line


@pytest.mark.contract("L8", "S4")
def test_bytes_that_the_worker_refuses_leave_no_file(tmp_path: Path) -> None:
    """An object storage has the parts of runs in a folder of the worker's, where no one sweeps."""
    ours, theirs = socket.socketpair()
    sizes: list[int] = []

    def answer() -> None:
        lines = Lines()
        while piece := theirs.recv(1 << 16):
            for told in lines.feed(piece):
                if told["ask"] == "scratch":
                    reply = {"answer": ["part", str(tmp_path / "part")]}
                else:
                    sizes.append(Path(told["path"]).stat().st_size)
                    reply = messages.error_to_wire(TooLarge("larger than allowed"))
                theirs.sendall(line({"number": told["number"], **reply}))

    worker = threading.Thread(target=answer, daemon=True)
    worker.start()
    try:
        desk = RemoteRunServices(ours, offset=0.0, artifacts=str(tmp_path / "artifacts"))
        with pytest.raises(TooLarge):
            desk.keep("large.bin", b"x" * 1000)
        assert sizes == [1000]
        assert list(tmp_path.iterdir()) == []
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        worker.join(timeout=60)
        for thread in threading.enumerate():
            if thread.name == "holdfast-desk-reader":
                thread.join(timeout=60)  # or it would read from a socket that is closed
        ours.close()
        theirs.close()
