"""A process for the tests of `system.child`: python -m tests.process.programs.supervised BEHAVIOUR [FD]."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

LONG = 120


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


def serve(fd: int) -> None:
    """Serve HTTP on an inherited socket."""
    with HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = socket.socket(fileno=fd)
        server.serve_forever()


def main(behaviour: str, fd: str = "") -> int:
    match behaviour:
        case "serves":
            serve(int(fd))
        case "dies":
            print("the disk is full", flush=True)
            return 3
        case "ignores":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "parent":
            subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep({LONG})"])
    print("ready", flush=True)
    time.sleep(LONG)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
