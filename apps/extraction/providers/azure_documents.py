"""Azure Document Intelligence, by its official SDK.

Starting an analysis is what costs money, so it is asked for once: the SDK's own retries are off for it, and the engine
remembers where the result will be. Asking for the result costs nothing and may be repeated by anyone. An analysis that
has failed, or that the service no longer knows, is Lost: then another one is started.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from azure.ai.documentintelligence import DocumentIntelligenceClient
from azure.ai.documentintelligence.models import AnalyzeResult
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.rest import HttpRequest, HttpResponse

from apps.extraction.analysis import Analysis, Cell, Page, Pair, Table, Unreadable
from apps.extraction.clean_text import first_line, plain
from apps.extraction.providers import Lost, Source, Trouble, Unfinished, is_alive
from apps.extraction.providers.retry_after import retry_after

WAIT = timedelta(seconds=1)
GONE = (404, 410)  # an operation that the service does not know, or no longer keeps
UNREADABLE = {
    "InvalidContent",
    "InvalidContentDimensions",
    "UnsupportedContent",
    "InvalidContentLength",
    "PasswordProtected",
}


class AzureDocuments:
    """`model` reads the document; the endpoint is the service's own, or one that speaks its protocol."""

    name = "documents"

    def __init__(self, endpoint: str, key: str, *, model: str, timeout: float) -> None:
        self._endpoint, self._model = endpoint.rstrip("/"), model
        self._client = DocumentIntelligenceClient(
            self._endpoint, AzureKeyCredential(key), retry_total=0, connection_timeout=timeout, read_timeout=timeout
        )

    def start(self, document: Source) -> str:
        answers: list[HttpResponse] = []
        content = document()
        with self._told():
            self._client.begin_analyze_document(
                self._model,
                io.BytesIO(content),
                content_type="application/octet-stream",
                polling=False,
                raw_response_hook=lambda answer: answers.append(answer.http_response),
            )
        place = answers[-1].headers.get("Operation-Location", "") if answers else ""
        if urlsplit(place)[:2] != urlsplit(self._endpoint)[:2]:
            # We send our key there: only to the service itself.
            raise Trouble(self.name, "the answer does not say where the result will be")
        return place

    def result(self, place: str, document: Source) -> Analysis | Unfinished:
        with self._told():
            answer = self._client.send_request(HttpRequest("GET", place))
            if answer.status_code in GONE:
                raise Lost(self.name, f"the analysis is not there any more: HTTP {answer.status_code}")
            answer.raise_for_status()
            told: dict[str, Any] = answer.json()
            match told.get("status"):
                case "notStarted" | "running":
                    wait = retry_after(answer.headers)
                    return Unfinished(after=WAIT if wait is None else wait)
                case "succeeded":
                    return _analysis(told["analyzeResult"])
                case "failed":
                    raise self._failed(told.get("error") or {})
                case status:
                    raise Trouble(self.name, f"a status that no one knows: {plain(str(status), 100)}")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except HttpResponseError as error:
            code = _code(error)
            if error.status_code == 400 and code in UNREADABLE:
                raise Unreadable(_word(code), f"the service can't read it: {code}") from error
            wait = retry_after(getattr(error.response, "headers", None))
            said = f"HTTP {error.status_code} {code}".strip()
            raise Trouble(self.name, said, after=wait, alive=is_alive(error.status_code)) from error
        except AzureError as error:
            raise Trouble(self.name, f"{type(error).__name__}: {first_line(error)}") from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise Trouble(self.name, f"an answer that can't be understood: {type(error).__name__}") from error

    def _failed(self, error: dict[str, Any]) -> Exception:
        code = _innermost(error) or "unknown"
        if code in UNREADABLE:
            return Unreadable(_word(code), f"the service can't read it: {code}")
        return Lost(self.name, f"the analysis failed: {code}")


def _analysis(told: dict[str, Any]) -> Analysis:
    """The service's result in our words; ValueError, or what its parts raise, if it is not what it says to be."""
    result = AnalyzeResult(told)
    made = Analysis(
        pages=[
            Page(number=page.page_number, text="\n".join(line.content for line in page.lines or ()))
            for page in result.pages
        ],
        tables=[
            Table(
                page=_page_of(table),
                rows=table.row_count,
                columns=table.column_count,
                cells=[Cell(row=cell.row_index, column=cell.column_index, text=cell.content) for cell in table.cells],
            )
            for table in result.tables or ()
        ],
        pairs=[
            Pair(
                page=_page_of(pair.key),
                name=pair.key.content,
                value=pair.value.content,
                confidence=float(pair.confidence or 0.0),
            )
            for pair in result.key_value_pairs or ()
            if pair.value is not None
        ],
    )
    return made.checked()  # the SDK checks no type


def _page_of(element: Any) -> int:
    regions = element.bounding_regions or ()
    return int(regions[0].page_number) if regions else 1


def _code(error: HttpResponseError) -> str:
    with contextlib.suppress(Exception):
        return _innermost(error.response.json()["error"])  # type: ignore[union-attr]
    return ""


def _innermost(error: dict[str, Any]) -> str:
    """The code that says most."""
    inner = error.get("innererror")
    code = (inner.get("code") if isinstance(inner, dict) else None) or error.get("code") or ""
    return plain(str(code), 100)


def _word(code: str) -> str:
    return "ENCRYPTED" if code == "PasswordProtected" else "UNREADABLE"
