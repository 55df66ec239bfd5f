"""Jobs: everything that extraction uses of Holdfast. Each document is processed by one run, in steps.

    begin (billed once) ─▶ read (snoozes until the analysis is done) ─▶ embed (a step per batch) ─▶ finish
      ▲                      │ the analysis has failed, is lost, or does not end
      └──────── forget ──────┘

Each paid call is a step of its own, so that it is not repeated. The run ends in the same transaction that saves the
fields, passages and vectors, so either all of them are saved or none.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from apps.extraction import vectors
from apps.extraction.analysis import Analysis, Unreadable, check_size
from apps.extraction.chunks import chunks
from apps.extraction.circuit_breaker import CircuitBreaker, CircuitOpen
from apps.extraction.document_store import Deleted, DocumentStore, analysis_blob, vectors_blob
from apps.extraction.fields import fields
from apps.extraction.providers import Analyser, AnalysisLost, BlobMissing, Blobs, Embedder, ServiceError, Unfinished
from apps.extraction.providers.analysers import open_analyser
from apps.extraction.providers.blobs import open_blobs
from apps.extraction.providers.embeddings import open_embedder
from apps.extraction.settings import Settings
from apps.extraction.sql_views import complete
from apps.extraction.tables import Base
from apps.shared.database import Database, engine_prefix
from holdfast import Context, GiveUp, Holdfast, Retry, Snooze, TryAgain

T = TypeVar("T")
QUEUE = "extraction"

settings = Settings.load()
hf = Holdfast(sqlite_module=vectors.SQLITE)
database = Database(
    hf.settings.url,
    Base.metadata,
    prepare=hf.start,
    complete=complete(
        dimensions=settings.dimensions,
        model=settings.model,
        prefix=engine_prefix(hf),
    ),
    opened=vectors.load_extension,
    sqlite_module=vectors.SQLITE,
)
store = DocumentStore(database)
breaker = CircuitBreaker(database, failures=settings.breaker_failures, pause=settings.breaker_pause, now=hf.clock.now)
blobs: Blobs = open_blobs(settings)
analyser: Analyser = open_analyser(settings)
_loading = threading.Lock()
_embedder: list[Embedder] = []


def embedder() -> Embedder:
    """Return the embedder; it is loaded on first use."""
    with _loading:
        if not _embedder:
            _embedder.append(open_embedder(settings))
        return _embedder[0]


@dataclass(frozen=True)
class Started:
    """An analysis that was started: the id of the operation that will have its result."""

    operation: str
    started_at: datetime


@hf.job(
    name="extraction.process",
    queue=QUEUE,
    max_attempts=settings.max_attempts,
    timeout=settings.threshold,
    on_timeout="retry",
    on_crash="retry",
    retry=Retry(step_attempts=1, delay=settings.retry_delay),
    only_from_code=True,  # a run without its row in document_runs would belong to no document
    start_at="/documents",
    keep_forever=True,  # never deleted by retention: `document_processing_jobs` keeps the history of each document
)
def process(ctx: Context, document_id: str) -> dict[str, Any]:
    """Read a document and save its pages, fields, passages and vectors."""
    upload = store.upload(document_id)
    if upload is None:
        raise GiveUp("the document was deleted", failure_type="DELETED")
    ctx.progress(0, 3, "reading")
    started = ctx.step("begin", _begin, upload.blob)
    try:
        ctx.step("read", _read, started, upload.blob)
    except AnalysisLost as error:
        ctx.forget("begin")  # otherwise every later attempt would wait for the same lost result
        raise TryAgain(str(error)) from None
    analysis = _load_analysis(upload.blob)
    passages = chunks(analysis.pages)
    if len(passages) > settings.max_passages:
        raise GiveUp(
            f"the document has {len(passages):,} passages; the limit is {settings.max_passages:,}",
            failure_type="TOO_LONG",
        )
    batches: list[str] = []
    for start in range(0, len(passages), settings.batch):
        ctx.check()
        ctx.progress(1 + start / len(passages), 3, f"embedding passage {start + 1} of {len(passages)}")
        texts = [chunk.text for chunk in passages[start : start + settings.batch]]
        batches.append(ctx.step(f"embed {start}", _embed, upload.blob, texts))
    ctx.progress(2, 3, "saving the results")
    embeddings = vectors.unpack(b"".join(map(_fetch, batches)), dimensions=settings.dimensions)
    found = fields(analysis)
    result = {"pages": len(analysis.pages), "passages": len(passages), "fields": len(found)}
    try:
        with database.write() as session:
            store.save(session, document_id, analysis, found, passages, embeddings, embedded_by=settings.model)
            ctx.finish(result, connection=session)
    except Deleted:
        _delete_blobs(analysis_blob(upload.blob), *batches)
        raise GiveUp("the document was deleted", failure_type="DELETED") from None
    _delete_blobs(analysis_blob(upload.blob), *batches)
    return result


def _begin(blob: str) -> Started:
    operation = _call(analyser.name, lambda: analyser.start(lambda: _fetch(blob)))
    return Started(operation, hf.clock.now())


def _read(started: Started, blob: str) -> int:
    """Store the analysis as a blob, because it may be too large for a step result, and return the number of pages.

    While the service is still reading, snooze the run, so that it occupies no worker. Stop waiting at the threshold.
    """
    answer = _call(analyser.name, lambda: analyser.result(started.operation, lambda: _fetch(blob)))
    if isinstance(answer, Unfinished):
        if hf.clock.now() - started.started_at > settings.threshold:
            raise AnalysisLost(analyser.name, f"the analysis has not ended within {settings.threshold}")
        raise Snooze("the service is still reading the document", after=answer.after)
    try:
        analysis = check_size(answer, most_pages=settings.max_pages, most_characters=settings.max_characters)
    except Unreadable as error:
        raise GiveUp(str(error), failure_type=error.failure_type) from None
    _call(blobs.name, lambda: blobs.put(analysis_blob(blob), analysis.to_json()))
    return len(analysis.pages)


def _load_analysis(blob: str) -> Analysis:
    return Analysis.from_json(_fetch(analysis_blob(blob)))


def _embed(blob: str, texts: list[str]) -> str:
    """Store the vectors as a blob and return its name.

    They are not stored as a step result, because step results outlive the document and vectors must not.
    """
    name = vectors_blob(blob, texts)
    packed = vectors.pack(_call(embedder().name, lambda: embedder().embed(texts)))
    _call(blobs.name, lambda: blobs.put(name, packed))
    return name


def _delete_blobs(*names: str) -> None:
    """Delete intermediate results; those that can't be deleted now are deleted later by the clean-up."""
    with contextlib.suppress(ServiceError):
        for name in names:
            blobs.remove(name)


def _fetch(blob: str) -> bytes:
    return _call(blobs.name, lambda: blobs.get(blob))


def _call(provider: str, request: Callable[[], T]) -> T:
    """Call a service through the circuit breaker, and translate its errors into outcomes of the run."""
    try:
        return breaker.call(provider, request)
    except CircuitOpen as error:
        raise Snooze(str(error), after=error.wait) from None
    except BlobMissing:
        raise GiveUp("the document's file is missing; upload it again", failure_type="FILE_MISSING") from None
    except Unreadable as error:
        raise GiveUp(str(error), failure_type=error.failure_type) from None
    except AnalysisLost:
        raise
    except ServiceError as error:
        raise TryAgain(str(error), after=error.after) from None


@hf.schedule(every=timedelta(minutes=5), name="extraction.delete_unused_files", queue=QUEUE, keep_forever=False)
def delete_unused_files(ctx: Context) -> int:
    """Delete files whose document was never saved or has been deleted."""
    return delete_unused()


def delete_unused() -> int:
    """Delete files that are old enough and belong to no document; return their number."""
    before = hf.clock.now() - settings.collect_after
    removed = 0
    for name in store.unused(stored.name for stored in blobs.all() if stored.stored_at < before):
        blobs.remove(name)
        removed += 1
    return removed
