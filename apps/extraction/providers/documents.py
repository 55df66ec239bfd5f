"""Azure Document Intelligence, by its official SDK.

Starting an analysis is what costs money, so it is asked for once: the SDK's own retries are off for it, and the engine
remembers where the result will be. Asking for the result costs nothing and may be repeated by anyone.
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

from apps.extraction.providers import Analysis, Cell, Page, Pair, Table, Trouble, Unfinished, Unreadable

WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=10)
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

    def start(self, document: bytes) -> str:
        answers: list[HttpResponse] = []
        with self._told():
            self._client.begin_analyze_document(
                self._model,
                io.BytesIO(document),
                content_type="application/octet-stream",
                polling=False,
                raw_response_hook=lambda answer: answers.append(answer.http_response),
            )
        place = answers[-1].headers.get("Operation-Location", "") if answers else ""
        if urlsplit(place)[:2] != urlsplit(self._endpoint)[:2]:
            # We send our key there: only to the service itself.
            raise Trouble(self.name, "the answer does not say where the result will be")
        return place

    def result(self, place: str, document: bytes) -> Analysis | Unfinished:
        with self._told():
            answer = self._client.send_request(HttpRequest("GET", place))
            answer.raise_for_status()
            told: dict[str, Any] = answer.json()
        match told.get("status"):
            case "notStarted" | "running":
                return Unfinished(after=_wait(answer) or WAIT)
            case "succeeded":
                return _analysis(told)
            case "failed":
                raise _failed(told.get("error") or {})
        raise Trouble(self.name, f"a status that no one knows: {str(told.get('status'))[:100]!r}")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except HttpResponseError as error:
            code = _code(error)
            if error.status_code == 400 and code in UNREADABLE:
                raise Unreadable(_word(code), f"the service can't read it: {code}") from error
            wait, throttled = _wait(error.response), error.status_code == 429
            raise Trouble(
                self.name, f"HTTP {error.status_code} {code}".strip(), after=wait, throttled=throttled
            ) from error
        except AzureError as error:
            raise Trouble(self.name, f"{type(error).__name__}: {str(error).splitlines()[0][:300]}") from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise Trouble(self.name, f"an answer that can't be understood: {type(error).__name__}") from error


def _analysis(told: dict[str, Any]) -> Analysis:
    try:
        result = AnalyzeResult(told["analyzeResult"])
        pages = [
            Page(number=page.page_number, text="\n".join(line.content for line in page.lines or ()))
            for page in result.pages
        ]
        tables = [
            Table(
                page=_page_of(table),
                rows=table.row_count,
                columns=table.column_count,
                cells=[Cell(row=cell.row_index, column=cell.column_index, text=cell.content) for cell in table.cells],
            )
            for table in result.tables or ()
        ]
        pairs = [
            Pair(
                page=_page_of(pair.key),
                name=pair.key.content,
                value=pair.value.content,
                confidence=pair.confidence or 0.0,
            )
            for pair in result.key_value_pairs or ()
            if pair.value is not None
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Trouble(AzureDocuments.name, f"a result that can't be understood: {type(error).__name__}") from error
    return Analysis(pages=pages, tables=tables, pairs=pairs)


def _page_of(element: Any) -> int:
    regions = element.bounding_regions or ()
    return int(regions[0].page_number) if regions else 1


def _failed(error: dict[str, Any]) -> Exception:
    inner = error.get("innererror") or {}
    code = str(inner.get("code") or error.get("code") or "unknown")[:100]
    if code in UNREADABLE:
        return Unreadable(_word(code), f"the service can't read it: {code}")
    return Trouble(AzureDocuments.name, f"the analysis failed: {code}")


def _code(error: HttpResponseError) -> str:
    """The innermost code, which says most."""
    with contextlib.suppress(Exception):
        told = error.response.json()["error"]  # type: ignore[union-attr]
        return str((told.get("innererror") or {}).get("code") or told.get("code") or "")[:100]
    return ""


def _word(code: str) -> str:
    return "ENCRYPTED" if code == "PasswordProtected" else "UNREADABLE"


def _wait(answer: Any) -> timedelta | None:
    """What Retry-After says, in seconds; nothing where it says nothing that we would follow."""
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        return min(max(timedelta(seconds=float(answer.headers.get("Retry-After"))), timedelta(0)), LONGEST_WAIT)
    return None
