"""Uploads are bounded while they are received, checked by content, and leave no files behind."""
# No postponed annotations: FastAPI could not resolve those that name local variables.

import hashlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, Request
from tests.web.conftest import TOKEN, Server, serving

from holdfast import Holdfast
from holdfast.web import IMAGES, PDF, Site, Who, create_app, magic, takes

DOCUMENT = b"%PDF-1.7\n" + b"x" * 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def uploading(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Holdfast(f"sqlite:///{tmp_path_factory.mktemp('db') / 'work.db'}", max_body_bytes=10_000) as hf:
        site = Site(hf, admin_token=TOKEN)
        own = site.resource("/documents")

        @own.post("")
        @takes(5_000_000)
        async def upload(request: Request, who: Annotated[Who, Depends(site.operator)]) -> dict[str, Any]:
            async with site.uploads.receive(
                request, accepts=magic(PDF, IMAGES), most_bytes=1_000_000, most_files=2, folder=folder
            ) as received:
                files = [
                    (file.field, file.name, file.media_type, file.size, file.sha256, len(file.path.read_bytes()))
                    for file in received.files
                ]
                return {"files": files, "fields": received.fields}

        app = create_app(site)
        app.include_router(own)
        with serving(hf, app=app) as found:
            yield found


@pytest.fixture(autouse=True)
def _no_file_is_left(folder: Path) -> Iterator[None]:
    yield
    for _ in range(6000):
        if not list(folder.iterdir()):
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"left behind: {list(folder.iterdir())}")


def send(server: Server, *files: tuple[str, bytes], **fields: str) -> httpx.Response:
    named = [("document", (name, content)) for name, content in files]
    return server.client("operator").post("/documents", files=named, data=fields)


def test_files_and_fields_arrive_as_they_were_sent(uploading: Server) -> None:
    answer = send(uploading, ("../../etc/a\u202e.pdf", DOCUMENT), ("b.png", b"\x89PNG\r\n\x1a\n"), note="für dich")
    assert answer.status_code == 200, answer.text
    digest = hashlib.sha256(DOCUMENT).hexdigest()
    first, second = answer.json()["files"]
    assert first == ["document", "a\u202e.pdf", "application/pdf", len(DOCUMENT), digest, len(DOCUMENT)]
    assert second[1:4] == ["b.png", "image/png", 8]
    assert answer.json()["fields"] == {"note": "für dich"}


@pytest.mark.parametrize(
    ("files", "status", "code"),
    [
        ([("a.pdf", b"MZ" + b"x" * 100)], 415, "unsupported_type"),
        ([("a.pdf", b"")], 415, "unsupported_type"),
        ([("a.pdf", b"%PDF-" + b"x" * 1_000_000)], 413, "body_too_large"),
        ([("a.pdf", DOCUMENT)] * 3, 413, "body_too_large"),
    ],
)
def test_uploads_that_are_too_large_or_of_the_wrong_kind_are_refused(
    uploading: Server, files: list[tuple[str, bytes]], status: int, code: str
) -> None:
    answer = send(uploading, *files)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_body_over_all_limits_is_not_read(uploading: Server) -> None:
    with socket.create_connection(("127.0.0.1", uploading.port), timeout=60) as raw:
        head = f"POST /documents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        raw.sendall(f"{head}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 5000001\r\n\r\n".encode())
        assert raw.makefile("rb").readline().split()[1] == b"413"


def test_a_body_that_is_not_a_valid_form_is_refused(uploading: Server) -> None:
    client = uploading.client("operator")
    assert client.post("/documents", content=DOCUMENT).json()["code"] == "unsupported_type"
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    for broken in (b"nonsense", b"--b\r\nContent-Disposition: form-data; name=x\r\n\r\nno end", b""):
        answer = client.post("/documents", content=broken, headers=form)
        assert (answer.status_code, answer.json()["code"]) == (400, "upload_broken"), broken


@pytest.mark.parametrize(
    ("parts", "status", "code"),
    [
        ([f"name=x; {'y' * 5000}"], 400, "upload_broken"),
        (["name=x\r\n" + "\r\n".join(f"X-{number}: y" for number in range(20))], 400, "upload_broken"),
        (["name=x\r\n\r\n" + "y" * 100_001], 413, "body_too_large"),
        ([f"name=x{number}\r\n\r\ny" for number in range(101)], 413, "body_too_large"),
    ],
    ids=["a long header", "many headers", "a long field", "many fields"],
)
def test_form_fields_are_bounded_too(uploading: Server, parts: list[str], status: int, code: str) -> None:
    form = "".join(f"--b\r\nContent-Disposition: form-data; {part}\r\n" for part in parts) + "\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = uploading.client("operator").post("/documents", content=form.encode(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_a_boundary_that_is_too_long_is_refused(uploading: Server) -> None:
    headers = {"Content-Type": f"multipart/form-data; boundary={'b' * 300}"}
    answer = uploading.client("operator").post("/documents", content=b"x", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "upload_broken")


def test_an_aborted_upload_leaves_no_file(uploading: Server, folder: Path) -> None:
    with socket.create_connection(("127.0.0.1", uploading.port), timeout=60) as raw:
        head = f"POST /documents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        part = 'Content-Disposition: form-data; name="document"; filename="a.pdf"'
        raw.sendall(f"{head}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 900000\r\n\r\n".encode())
        raw.sendall(f"--b\r\n{part}\r\n\r\n".encode() + DOCUMENT)
        for _ in range(6000):
            if list(folder.iterdir()):
                break
            threading.Event().wait(0.01)
        assert list(folder.iterdir())


def test_the_csrf_token_of_an_upload_form_may_be_in_the_address(uploading: Server) -> None:
    client = uploading.client("operator", cookie=True)
    token = client.headers.pop("X-CSRF-Token")
    files = {"document": ("a.pdf", DOCUMENT)}
    assert client.post("/documents", files=files).json()["code"] == "csrf_missing"
    assert client.post("/documents", files=files, params={"csrf": token}).status_code == 200
