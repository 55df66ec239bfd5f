"""Azure documents: read documents with Azure Document Intelligence and its official SDK.

Starting an analysis costs money, so it is done once: the SDK's retries are off, and a step of the run stores the
operation. Asking for the result costs nothing and may be repeated. If an analysis has failed, or if the service no
longer knows it, AnalysisLost is raised and the run starts another analysis.
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
from apps.extraction.providers import AnalysisLost, ServiceError, Source, Unfinished, is_reachable
from apps.extraction.providers.retry_after import retry_after

POLL_INTERVAL = timedelta(seconds=1)
GONE = (404, 410)  # the service does not know the operation, or has deleted it
UNREADABLE = {
    "InvalidContent",
    "InvalidContentDimensions",
    "UnsupportedContent",
    "InvalidContentLength",
    "PasswordProtected",
}


class AzureDocuments:
    """Reads documents with `model`; the endpoint is Azure's, or a server with the same protocol."""

    name = "documents"

    def __init__(self, endpoint: str, key: str, *, model: str, timeout: float) -> None:
        self._endpoint, self._model = endpoint.rstrip("/"), model
        self._client = DocumentIntelligenceClient(
            self._endpoint, AzureKeyCredential(key), retry_total=0, connection_timeout=timeout, read_timeout=timeout
        )

    def start(self, document: Source) -> str:
        responses: list[HttpResponse] = []
        content = document()
        with self._service_errors():
            self._client.begin_analyze_document(
                self._model,
                io.BytesIO(content),
                content_type="application/octet-stream",
                polling=False,
                raw_response_hook=lambda call: responses.append(call.http_response),
            )
        operation = responses[-1].headers.get("Operation-Location", "") if responses else ""
        if urlsplit(operation)[:2] != urlsplit(self._endpoint)[:2]:
            # We send our key to this address, so it must belong to the service itself.
            raise ServiceError(self.name, "the response has no valid Operation-Location")
        return operation

    def result(self, operation: str, document: Source) -> Analysis | Unfinished:
        with self._service_errors():
            response = self._client.send_request(HttpRequest("GET", operation))
            if response.status_code in GONE:
                raise AnalysisLost(self.name, f"the analysis no longer exists: HTTP {response.status_code}")
            response.raise_for_status()
            body: dict[str, Any] = response.json()
            match body.get("status"):
                case "notStarted" | "running":
                    wait = retry_after(response.headers)
                    return Unfinished(after=POLL_INTERVAL if wait is None else wait)
                case "succeeded":
                    return _analysis(body["analyzeResult"])
                case "failed":
                    raise self._failed(body.get("error") or {})
                case status:
                    raise ServiceError(self.name, f"unknown status: {plain(str(status), 100)}")

    @contextlib.contextmanager
    def _service_errors(self) -> Iterator[None]:
        """Raise every error as a ServiceError, or as Unreadable if the service refuses the document."""
        try:
            yield
        except HttpResponseError as error:
            code = _code(error)
            if error.status_code == 400 and code in UNREADABLE:
                raise Unreadable(_failure_type(code), f"the service can't read the document: {code}") from error
            wait = retry_after(getattr(error.response, "headers", None))
            message = f"HTTP {error.status_code} {code}".strip()
            raise ServiceError(self.name, message, after=wait, reachable=is_reachable(error.status_code)) from error
        except AzureError as error:
            raise ServiceError(self.name, f"{type(error).__name__}: {first_line(error)}") from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise ServiceError(self.name, f"the response is malformed: {type(error).__name__}") from error

    def _failed(self, error: dict[str, Any]) -> Exception:
        code = _innermost(error) or "unknown"
        if code in UNREADABLE:
            return Unreadable(_failure_type(code), f"the service can't read the document: {code}")
        return AnalysisLost(self.name, f"the analysis failed: {code}")


def _analysis(body: dict[str, Any]) -> Analysis:
    """Convert the result of the service; raise ValueError, TypeError or the like if it is malformed."""
    result = AnalyzeResult(body)
    analysis = Analysis(
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
    return analysis.checked()  # the SDK does not check types


def _page_of(element: Any) -> int:
    regions = element.bounding_regions or ()
    return int(regions[0].page_number) if regions else 1


def _code(error: HttpResponseError) -> str:
    with contextlib.suppress(Exception):
        return _innermost(error.response.json()["error"])  # type: ignore[union-attr]
    return ""


def _innermost(error: dict[str, Any]) -> str:
    """Return the most specific error code."""
    inner = error.get("innererror")
    code = (inner.get("code") if isinstance(inner, dict) else None) or error.get("code") or ""
    return plain(str(code), 100)


def _failure_type(code: str) -> str:
    return "ENCRYPTED" if code == "PasswordProtected" else "UNREADABLE"
