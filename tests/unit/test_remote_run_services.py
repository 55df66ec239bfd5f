"""Run services in an isolated run, with a scripted worker at the other end."""

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
def test_an_artifact_that_the_worker_refuses_leaves_no_file(tmp_path: Path) -> None:
    """With object storage, unfinished files are in a folder of the worker that nothing else cleans up."""
    ours, theirs = socket.socketpair()
    sizes: list[int] = []

    def answer() -> None:
        lines = Lines()
        while piece := theirs.recv(1 << 16):
            for message in lines.feed(piece):
                if message["request"] == "scratch":
                    reply = {"reply": ["part", str(tmp_path / "part")]}
                else:
                    sizes.append(Path(message["path"]).stat().st_size)
                    reply = messages.error_to_wire(TooLarge("larger than allowed"))
                theirs.sendall(line({"number": message["number"], **reply}))

    worker = threading.Thread(target=answer, daemon=True)
    worker.start()
    try:
        services = RemoteRunServices(ours, offset=0.0, artifacts=str(tmp_path / "artifacts"))
        with pytest.raises(TooLarge):
            services.keep("large.bin", b"x" * 1000)
        assert sizes == [1000]
        assert list(tmp_path.iterdir()) == []
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        worker.join(timeout=60)
        for thread in threading.enumerate():
            if thread.name == "holdfast-services-reader":
                thread.join(timeout=60)  # so that it does not read from a closed socket
        ours.close()
        theirs.close()
