"""Transport: sends requests to a server, and turns its error responses into Holdfast's errors."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import pydantic_core

from holdfast.support import errors
from holdfast.support.errors import (
    HoldfastError,
    InvalidSetting,
    NotSerialisable,
    OnlyFromCode,
    QueueFull,
    ServerRefused,
    ServerUnavailable,
    SlotTaken,
)

try:
    import httpx
except ImportError as error:  # pragma: no cover
    raise InvalidSetting(f"the client needs more packages ({error}): run pip install 'holdfast[web]'") from error

BLOCK = 1 << 16


def _known() -> Mapping[str, type[HoldfastError]]:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, HoldfastError)]
    return {each.code: each for each in classes}


KNOWN = _known()


class Wire:
    """The connection to the API of one server."""

    def __init__(self, url: str, *, token: str | None, timeout: float) -> None:
        self.url, url_token = _parse(url)
        secret = token or url_token or os.environ.get("HOLDFAST_TOKEN")
        if secret is not None and not (secret.isascii() and secret.isprintable()):
            raise InvalidSetting("a token must be printable ASCII, because it is sent as a header")
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._timeout = timeout
        self._http = httpx.Client(headers=headers, timeout=timeout)

    def get(self, *path: str, **query: Any) -> Any:
        # If the server is asked to wait for events, its answer may take that much longer.
        return self._json("GET", path, query=query, timeout=self._timeout + float(query.get("wait") or 0))

    def post(self, *path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        return self._json("POST", path, body=body, headers=headers)

    def delete(self, *path: str) -> None:
        self._json("DELETE", path)

    @contextlib.contextmanager
    def stream(self, *path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Iterator[httpx.Response]:
        """Open a response whose body is read as it arrives. The timeout applies between two parts of the body."""
        with self._errors():
            request = self._http.build_request("GET", self._at(path), params=_given(query), headers=dict(headers or {}))
            response = self._http.send(request, stream=True)
            try:
                if response.status_code >= 400:
                    response.read()
                    raise error_of(response)
                yield response
            finally:
                response.close()

    def close(self) -> None:
        self._http.close()

    def _json(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        with self._errors():
            content = None if body is None else _json(body)
            sent = {"Content-Type": "application/json"} if body is not None else {}
            response = self._http.request(
                method,
                self._at(path),
                params=_given(query or {}),
                content=content,
                headers={**sent, **(headers or {})},
                timeout=timeout or self._timeout,
            )
        if response.status_code >= 400:
            raise error_of(response)
        if response.status_code == 204:
            return None
        try:
            return response.json()
        except ValueError:
            raise ServerUnavailable(f"{self.url} answers, but not as a Holdfast server; check the URL") from None

    def _at(self, path: tuple[str, ...]) -> str:
        return f"{self.url}/api/{'/'.join(map(_part, path))}"

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of the HTTP client into Holdfast's errors."""
        try:
            yield
        except httpx.TimeoutException as error:
            raise ServerUnavailable(f"{self.url} did not answer in time") from error
        except httpx.HTTPError as error:
            raise ServerUnavailable(f"{self.url} can't be reached: {error}") from error
        except httpx.InvalidURL as error:
            raise InvalidSetting(f"{self.url} is not a valid URL: {error}") from error


def error_of(response: httpx.Response) -> HoldfastError:
    """Return the error for a problem response, of the same class that `Holdfast` would have raised."""
    try:
        problem = response.json()
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return ServerUnavailable(
            f"{response.url.host} answers {response.status_code}, but not as a Holdfast server; check the URL"
        )
    match code:
        case "queue_full":
            after = timedelta(seconds=problem["retry_after"])
            return QueueFull(problem["queue"], limit=problem["limit"], queued=problem["queued"], retry_after=after)
        case "slot_taken":
            return SlotTaken(detail, run_id=problem.get("run_id"))
        case "only_from_code":
            return OnlyFromCode(detail, start_at=problem.get("start_at"))
        case "invalid_request":
            faults = "; ".join(f"{fault['where']}: {fault['what']}" for fault in problem.get("errors") or ())
            return ServerRefused(f"{detail}: {faults}" if faults else detail, problem=code)
        case _ if code in KNOWN and code != "run_failed":
            return KNOWN[code](detail)
    return ServerRefused(detail, problem=code)


def _parse(url: str) -> tuple[str, str | None]:
    """Split a URL into the address of the server and the token in its query, if there is one."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidSetting(f"{url.partition('?')[0]!r} is not the URL of a server; write http://host:port")
    token = next(iter(parse_qs(parts.query).get("token", ())), None)
    path = parts.path.rstrip("/").removesuffix("/api")
    if parts.username is not None:
        raise InvalidSetting("the URL of a server can't contain a user or password; give a token instead")
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), token


def _json(body: Any) -> str:
    """Encode a body as `Holdfast` encodes arguments: datetimes, UUIDs and models as their text or fields."""
    try:
        return json.dumps(body, default=partial(pydantic_core.to_jsonable_python, bytes_mode="base64"))
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerialisable(f"the arguments can't be sent as JSON: {error}") from None


def _part(name: str) -> str:
    """Quote a name as one part of a path. If a name has only dots, they are quoted, so that `..` stays a name."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None and value != []}
