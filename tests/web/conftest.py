"""A real server on a free local port, and HTTP clients with each role."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from holdfast import Holdfast
from holdfast.values.tokens import Role
from holdfast.web import Site, create_app
from holdfast.web.server import Address

TOKEN = "a-token-that-only-these-tests-know"
ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # shared, or each client would load all CAs


class Server:
    """A running server.

    site     its Site, or None if the test brought its own application
    token    the admin token
    client   a client with a role, by token or by cookie; without a role it is not signed in
    """

    def __init__(self, hf: Holdfast, app: FastAPI, site: Site | None, *, token: str = TOKEN) -> None:
        self.hf, self.app, self.site, self.token = hf, app, site, token
        self._socket = Address(port=0).listen()
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
        self.uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.uvicorn.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._clients: list[httpx.Client] = []
        self._tokens: dict[str, str] = {"admin": token}
        self._lock = threading.Lock()

    def start(self) -> None:
        self._thread.start()
        for _ in range(6000):
            if self.uvicorn.started:
                return
            assert self._thread.is_alive(), "the server did not start"
            threading.Event().wait(0.01)
        raise AssertionError("the server did not start in time")

    def token_of(self, role: Role) -> str:
        """A token with this role; its name is the role."""
        with self._lock:
            if role not in self._tokens:
                self._tokens[role] = self.hf.tokens.add(role, role=role)
            return self._tokens[role]

    def client(self, role: Role | None = None, *, cookie: bool = False, **options: Any) -> httpx.Client:
        """A client with this role; with `cookie` it has signed in like a browser and sends its CSRF token."""
        headers = dict(options.pop("headers", {}))
        if role is not None and not cookie:
            headers["Authorization"] = f"Bearer {self.token_of(role)}"
        client = httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=NO_TLS, **options)
        self._clients.append(client)
        if role is not None and cookie:
            signed_in = client.post("/sign-in", data={"token": self.token_of(role)})
            assert signed_in.status_code == 303, signed_in.text
            from holdfast.web.auth import session_cookies

            client.headers["X-CSRF-Token"] = session_cookies.csrf(next(iter(client.cookies.values())))
        return client

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        if self.site is not None:
            self.site.streams.close()
        self.uvicorn.should_exit = True
        self._thread.join(60)
        self._socket.close()
        assert not self._thread.is_alive(), "the server did not stop"


@contextlib.contextmanager
def serving(
    hf: Holdfast, *, app: FastAPI | None = None, hosts: tuple[str, ...] = (), **options: Any
) -> Iterator[Server]:
    """Serve `app`, or by default a Site of `hf` with these options."""
    site = None
    if app is None:
        site = Site(hf, admin_token=TOKEN, **options)
        app = create_app(site, hosts=hosts)
    server = Server(hf, app, site)
    server.start()
    try:
        yield server
    finally:
        server.stop()


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(hf, **options)` starts a server, which is stopped at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda hf, **options: stack.enter_context(serving(hf, **options))


@pytest.fixture(scope="module")
def server(hf: Holdfast) -> Iterator[Server]:
    """A server for a module's `hf` fixture; the tests of the module share it."""
    with serving(hf) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for a module's tests, on SQLite, with a real clock and no worker."""
    folder: Path = tmp_path_factory.mktemp("web")
    with Holdfast(f"sqlite:///{folder / 'work.db'}", artifacts=folder / "artifacts") as hf, serving(hf) as found:
        yield found
