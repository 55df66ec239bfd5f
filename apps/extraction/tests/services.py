"""Services: local servers that speak the protocols of Azure Document Intelligence and of OpenAI's embeddings.

They count what would be billed. `plan` sets how they answer the next requests.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import socket
import struct
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pypdf

KEY = "a-key-for-tests"
DIMENSIONS = 32


class Gate:
    """Holds a request when it arrives, before anything is done for it, until `open` is called."""

    def __init__(self) -> None:
        self._arrived, self._open = threading.Event(), threading.Event()

    @property
    def arrived(self) -> bool:
        return self._arrived.is_set()

    def open(self) -> None:
        self._open.set()

    def hold(self) -> None:
        self._arrived.set()
        self._open.wait(120)


@dataclass
class Fault:
    """An unusual response. With `hang`, it is sent only after the test.

    With `gate`, the request waits until the gate is opened, and then gets its usual response.
    """

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"error": {"code": "InternalServerError", "message": "internal error"}}'
    hang: bool = False
    gate: Gate | None = None


class Services:
    """Both services at one address. `counts`, `bodies` and `times` record the requests."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.times: dict[str, list[float]] = {"analyze": [], "result": [], "embeddings": []}
        self.bodies: list[Any] = []
        self.faults: dict[str, deque[Fault]] = {"analyze": deque(), "result": deque(), "embeddings": deque()}
        self.polls = 1
        self.failed: dict[str, Any] | None = None
        self.ends: deque[str] = deque()
        """How the next analyses end: failed, gone or never. Later ones succeed."""
        self.over = threading.Event()
        self._gates: list[Gate] = []
        self._lock = threading.Lock()
        self._analyses: dict[str, tuple[bytes, int, str]] = {}
        services = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

            def do_POST(self) -> None:
                body = self._body()
                if ":analyze" in self.path:
                    services._analyze(self, body)
                elif "/embeddings" in self.path:
                    services._embeddings(self, body)
                else:
                    self.answer(404, {"error": {"code": "NotFound"}})

            def do_GET(self) -> None:
                services._result(self)

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pieces = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)

            def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables with which an application uses these services."""
        return {
            "EXTRACTION_ANALYSIS": "azure",
            "EXTRACTION_AZURE_DOCUMENTS_ENDPOINT": self.url,
            "EXTRACTION_AZURE_DOCUMENTS_KEY": KEY,
            "EXTRACTION_EMBEDDINGS": "openai",
            "EXTRACTION_OPENAI_KEY": KEY,
            "EXTRACTION_OPENAI_ENDPOINT": f"{self.url}/v1",
            "EXTRACTION_DIMENSIONS": str(DIMENSIONS),
            "EXTRACTION_BATCH": "2",
            "EXTRACTION_RETRY_DELAY": "0.1",
            "EXTRACTION_REQUEST_TIMEOUT": "2",
            "EXTRACTION_BREAKER_FAILURES": "50",
            "EXTRACTION_BREAKER_PAUSE": "0.3",
        }

    def plan(self, what: str, *faults: Fault) -> None:
        """Set the responses to the next requests of a kind: analyze, result or embeddings."""
        self.faults[what].extend(faults)

    def hold(self, what: str, *, after: int = 0) -> Gate:
        """Hold a request of a kind, after letting `after` requests pass. Open the returned gate to let it continue."""
        gates = [Gate() for _ in range(after + 1)]
        for earlier in gates[:-1]:
            earlier.open()
        self._gates += gates
        self.plan(what, *[Fault(gate=gate) for gate in gates])
        return gates[-1]

    def reset(self) -> None:
        """Clear all plans and counters."""
        self.over.set()
        for gate in self._gates:
            gate.open()
        with self._lock:
            self.over = threading.Event()
            self.counts.clear()
            for times in self.times.values():
                times.clear()
            self.bodies.clear()
            self._gates.clear()
            for faults in self.faults.values():
                faults.clear()
            self.polls, self.failed = 1, None
            self.ends.clear()

    def close(self) -> None:
        self.reset()
        self._server.shutdown()
        self._server.server_close()

    def _planned(self, what: str, handler: Any) -> bool:
        with self._lock:
            self.counts[what] += 1
            self.times[what].append(time.monotonic())
            fault = self.faults[what].popleft() if self.faults[what] else None
            over = self.over
        if fault is None:
            return False
        if fault.gate is not None:
            fault.gate.hold()
            if not _listens(handler.connection):
                handler.close_connection = True  # the client has disconnected, so bill nothing
                return True
            return False
        if fault.hang:
            over.wait(60)
        handler.answer(fault.status, fault.body, fault.headers)
        return True

    def _analyze(self, handler: Any, body: bytes) -> None:
        if handler.headers.get("Ocp-Apim-Subscription-Key") != KEY:
            handler.answer(401, {"error": {"code": "401", "message": "wrong key"}})
            return
        if self._planned("analyze", handler):
            return
        name = uuid.uuid4().hex
        with self._lock:
            self.counts["billed analyses"] += 1
            self._analyses[name] = body, self.polls, self.ends.popleft() if self.ends else "succeeded"
        operation = f"{self.url}/documentintelligence/documentModels/prebuilt-layout/analyzeResults/{name}"
        handler.answer(202, b"", {"Operation-Location": operation, "Retry-After": "0"})

    def _result(self, handler: Any) -> None:
        if self._planned("result", handler):
            return
        name = handler.path.partition("?")[0].rpartition("/")[2]
        with self._lock:
            if name not in self._analyses:
                handler.answer(404, {"error": {"code": "NotFound", "message": "no such operation"}})
                return
            body, polls, end = self._analyses[name]
            self._analyses[name] = body, polls - 1, end
        if end == "gone":
            handler.answer(404, {"error": {"code": "NotFound", "message": "no such operation"}})
        elif polls > 0 or end == "never":
            handler.answer(200, {"status": "running"}, {"Retry-After": "0"})
        elif end == "failed":
            handler.answer(200, {"status": "failed", "error": {"code": "InternalServerError"}})
        elif self.failed is not None:
            handler.answer(200, {"status": "failed", "error": self.failed})
        else:
            handler.answer(200, {"status": "succeeded", "analyzeResult": _analysis(body)})

    def _embeddings(self, handler: Any, body: bytes) -> None:
        if handler.headers.get("Authorization") != f"Bearer {KEY}" and handler.headers.get("api-key") != KEY:
            handler.answer(401, {"error": {"message": "wrong key", "code": "invalid_api_key"}})
            return
        request = json.loads(body)
        if self._planned("embeddings", handler):
            return
        with self._lock:
            self.counts["billed passages"] += len(request["input"])
            self.bodies.append(request)
        vectors = [_vector(text) for text in request["input"]]
        coded = [
            base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *vector)).decode()
            if request.get("encoding_format") == "base64"
            else vector
            for vector in vectors
        ]
        data = [{"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(coded)]
        handler.answer(
            200,
            {
                "object": "list",
                "model": request["model"],
                "data": data,
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            },
        )


def _listens(connection: socket.socket) -> bool:
    """Whether the client is still connected; a closed connection reads as empty."""
    with contextlib.suppress(BlockingIOError):
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    return True


@contextlib.contextmanager
def services() -> Iterator[Services]:
    servers = Services()
    try:
        yield servers
    finally:
        servers.close()


def _analysis(document: bytes) -> dict[str, Any]:
    """Return an analysis of a document: its lines, and a fixed table and pair."""
    pages = [page.extract_text().splitlines() for page in pypdf.PdfReader(io.BytesIO(document)).pages]
    content = "\n".join(line for page in pages for line in page)
    return {
        "apiVersion": "2024-11-30",
        "modelId": "prebuilt-layout",
        "stringIndexType": "textElements",
        "content": content,
        "pages": [
            {
                "pageNumber": number,
                "spans": [],
                "lines": [{"content": line, "polygon": [], "spans": []} for line in lines],
            }
            for number, lines in enumerate(pages, start=1)
        ],
        "tables": [
            {
                "rowCount": 1,
                "columnCount": 2,
                "cells": [
                    {"rowIndex": 0, "columnIndex": 0, "content": "Colour", "spans": []},
                    {"rowIndex": 0, "columnIndex": 1, "content": "red", "spans": []},
                ],
                "boundingRegions": [{"pageNumber": 1, "polygon": []}],
                "spans": [],
            }
        ],
        "keyValuePairs": [
            {
                "key": {"content": "Customer", "spans": [], "boundingRegions": [{"pageNumber": 1, "polygon": []}]},
                "value": {"content": "Ada", "spans": []},
                "confidence": 0.87,
            }
        ],
    }


def _vector(text: str) -> list[float]:
    """Return a vector that depends only on the text."""
    digest = hashlib.sha256(text.encode()).digest()
    return [byte - 127.5 for byte in digest]
