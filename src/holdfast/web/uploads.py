"""Uploads: receive files of a form with limits on size and type, and delete them afterwards.

    @records.post("/documents")
    @takes(20_000_000)
    async def upload(request: Request, who: ...):
        async with site.uploads.receive(request, accepts=magic(PDF), most_bytes=10_000_000) as received:
            for file in received.files:
                file.path, file.name, file.media_type, file.size, file.sha256

The form of a page sends its CSRF token in the URL (`?csrf=`), because the token is checked before the body is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from holdfast.web.problems import Problem

HEAD = 4096  # bytes from which the type of a file is detected
MOST_FIELDS, LONGEST_FIELD, LONGEST_NAME = 100, 100_000, 255

PDF = {b"%PDF-": "application/pdf"}
IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

Accepts = Callable[[bytes], str | None]


def magic(*kinds: Mapping[bytes, str]) -> Accepts:
    """Accept files by their first bytes, whatever their name; `kinds` map these bytes to media types."""
    known = {beginning: kind for each in kinds for beginning, kind in each.items()}

    def kind_of(head: bytes) -> str | None:
        return next((kind for beginning, kind in known.items() if head.startswith(beginning)), None)

    return kind_of


@dataclass(frozen=True, kw_only=True)
class Upload:
    """An uploaded file; it exists at `path` until the `async with` block ends. `name` is the sender's file name."""

    field: str
    name: str
    media_type: str
    size: int
    sha256: str
    path: Path


@dataclass(frozen=True)
class Received:
    """The files and the other fields of a form."""

    files: list[Upload] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)


class Uploads:
    """Receives uploaded files."""

    @contextlib.asynccontextmanager
    async def receive(
        self,
        request: Request,
        *,
        accepts: Accepts,
        most_bytes: int,
        most_files: int = 1,
        folder: Path | None = None,
    ) -> AsyncIterator[Received]:
        """Receive the files of a form, each with at most `most_bytes` bytes and of a type that `accepts` recognises.

        They are stored in a temporary folder, which is always deleted at the end.
        """
        temporary = Path(await run_in_threadpool(tempfile.mkdtemp, prefix="holdfast-upload-", dir=folder))
        try:
            form = _Form(temporary, accepts, most_bytes=most_bytes, most_files=most_files)
            try:
                await _read(request, form)
            finally:
                form.close()
            yield form.received
        finally:
            await run_in_threadpool(shutil.rmtree, temporary, ignore_errors=True)


async def _read(request: Request, form: _Form) -> None:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise Problem("unsupported_type", "send files as multipart/form-data", status=415)
    try:
        parser = MultipartParser(options[b"boundary"], form.callbacks)
        async for piece in request.stream():
            await run_in_threadpool(parser.write, piece)  # it writes files
        parser.finalize()
    except (FormParserError, ClientDisconnect, UnicodeError) as error:
        raise Problem(
            "upload_broken", f"the form could not be read: {str(error) or 'it was cut off'}", status=400
        ) from error
    if not form.complete:
        raise Problem("upload_broken", "the form is incomplete", status=400)


class _Form:
    """Stores the parts of a form, and stops at the first that exceeds a limit.

    `request.form()` would read a whole file before its size or type could be refused, and would accept an incomplete
    form.
    """

    def __init__(self, folder: Path, accepts: Accepts, *, most_bytes: int, most_files: int) -> None:
        self.received, self.complete = Received(), False
        self._folder, self._accepts = folder, accepts
        self._most_bytes, self._most_files = most_bytes, most_files
        self._name, self._value = b"", b""
        self._headers: dict[bytes, bytes] = {}
        self._field, self._file_name = "", ""
        self._text, self._head = b"", b""
        self._kind: str | None = None
        self._file: BinaryIO | None = None

    @property
    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._headers.clear,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header,
            "on_headers_finished": self._begin,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name, self._value = b"", b""

    def _begin(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        name = options.get(b"filename")
        self._text, self._head, self._kind = b"", b"", None
        if name is None:
            if len(self.received.fields) >= MOST_FIELDS:
                raise Problem("body_too_large", f"a form may have at most {MOST_FIELDS} fields", status=413)
            return
        if len(self.received.files) >= self._most_files:
            raise Problem("body_too_large", f"a form may have at most {self._most_files} files", status=413)
        # This name is only for display: the stored file is named by its number.
        self._file_name = name.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2][:LONGEST_NAME]
        self._file = (self._folder / str(len(self.received.files))).open("xb")
        self._size, self._digest = 0, hashlib.sha256()

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._write(self._file, data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > LONGEST_FIELD:
            raise Problem("body_too_large", f"field {self._field[:50]!r} is too long", status=413)

    def _write(self, file: BinaryIO, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._most_bytes:
            raise Problem("body_too_large", f"a file may have at most {self._most_bytes:,} bytes", status=413)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
            if len(self._head) == HEAD:
                self._check_type()
        self._digest.update(data)
        file.write(data)

    def _check_type(self) -> None:
        self._kind = self._accepts(self._head)
        if self._kind is None:
            raise Problem(
                "unsupported_type", f"the content of {self._file_name!r} is not of an accepted file type", status=415
            )

    def _end(self) -> None:
        if self._file is None:
            self.received.fields[self._field] = self._text.decode("utf-8", "replace")
            return
        if len(self._head) < HEAD:
            self._check_type()
        self._file.close()
        self._file = None
        assert self._kind is not None
        self.received.files.append(
            Upload(
                field=self._field,
                name=self._file_name,
                media_type=self._kind,
                size=self._size,
                sha256=self._digest.hexdigest(),
                path=self._folder / str(len(self.received.files)),
            )
        )

    def _finish(self) -> None:
        self.complete = True
