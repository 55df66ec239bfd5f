"""Jobs: all that extraction asks of Holdfast. A document is one run, and what costs money is a step of it.

    begin (billed once) ─▶ read, put off while the service is at it ─▶ embed, a step a batch ─▶ finish
      ▲                      │ the analysis has failed, is gone, or does not end
      └──────── forget ──────┘

The run ends in the transaction that has its fields, passages and vectors: all of it is there, or nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from apps.extraction import vectors
from apps.extraction.analysis import Analysis, Unreadable, bounded
from apps.extraction.chunks import chunks
from apps.extraction.circuit_breaker import Away, CircuitBreaker
from apps.extraction.document_store import Deleted, DocumentStore, analysis_blob, vectors_blob
from apps.extraction.fields import fields
from apps.extraction.providers import Analyser, BlobMissing, Blobs, Embedder, Lost, Trouble, Unfinished
from apps.extraction.providers.blobs import open_blobs
from apps.extraction.providers.choice import open_analyser
from apps.extraction.providers.embeddings import open_embedder
from apps.extraction.settings import Settings
from apps.extraction.sql_views import complete
from apps.extraction.tables import Base
from apps.shared.database import Database, engine_prefix
from holdfast import Context, GiveUp, Holdfast, Retry, TryAgain

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
    opened=vectors.opened,
    sqlite_module=vectors.SQLITE,
)
store = DocumentStore(database)
breaker = CircuitBreaker(database, failures=settings.breaker_failures, pause=settings.breaker_pause, now=hf.clock.now)
blobs: Blobs = open_blobs(settings)
analyser: Analyser = open_analyser(settings)
_loading = threading.Lock()
_embedder: list[Embedder] = []


def embedder() -> Embedder:
    """What makes vectors; loaded when it is first needed."""
    with _loading:
        if not _embedder:
            _embedder.append(open_embedder(settings))
        return _embedder[0]


@dataclass(frozen=True)
class Begun:
    """An analysis that was begun: where its result will be, and since when."""

    place: str
    at: datetime


@hf.job(
    name="extraction.process",
    queue=QUEUE,
    max_attempts=settings.max_attempts,
    timeout=settings.threshold,
    on_timeout="retry",
    on_crash="retry",
    retry=Retry(steps=1, delay=settings.retry_delay),
    only_from_code=True,  # a document names its run
    start_at="/documents",
    audit=True,  # `document_processing_jobs` tells how every document fared, as long as the document is there
)
def process(ctx: Context, document_id: str) -> dict[str, Any]:
    """Read a document and keep what it says."""
    kept = store.kept(document_id)
    if kept is None:
        raise GiveUp("the document was deleted", failure_type="DELETED")
    ctx.progress(0, 3, "reading")
    begun = ctx.step("begin", _begin, kept.blob)
    try:
        ctx.step("read", _read, begun, kept.blob)
    except Lost as error:
        ctx.forget("begin")  # or every later attempt would ask for the same result, which never comes
        raise TryAgain(str(error)) from None
    analysis = _remembered(kept.blob)
    found = chunks(analysis.pages)
    if len(found) > settings.max_passages:
        raise GiveUp(f"it has more than {settings.max_passages} passages", failure_type="TOO_LONG")
    made: list[str] = []
    for start in range(0, len(found), settings.batch):
        ctx.check()
        ctx.progress(1 + start / len(found), 3, f"passage {start} of {len(found)}")
        texts = [chunk.text for chunk in found[start : start + settings.batch]]
        made.append(ctx.step(f"embed {start}", _embed, kept.blob, texts))
    ctx.progress(2, 3, "keeping what was read")
    numbers = vectors.unpacked(b"".join(map(_fetched, made)), dimensions=settings.dimensions)
    stated = fields(analysis)
    result = {"pages": len(analysis.pages), "passages": len(found), "fields": len(stated)}
    try:
        with database.write() as session:
            store.keep(session, document_id, analysis, stated, found, numbers, embedded_by=settings.model)
            ctx.finish(result, connection=session)
    except Deleted:
        _forget(analysis_blob(kept.blob), *made)
        raise GiveUp("the document was deleted", failure_type="DELETED") from None
    _forget(analysis_blob(kept.blob), *made)
    return result


def _begin(blob: str) -> Begun:
    return Begun(_asked(analyser.name, lambda: analyser.start(lambda: _fetched(blob))), hf.clock.now())


def _read(begun: Begun, blob: str) -> int:
    """Keep the analysis beside the file, and say how many pages it has: it may be larger than what a step remembers.

    One that takes longer is asked for again later, until the job's threshold, and holds no worker meanwhile.
    """
    found = _asked(analyser.name, lambda: analyser.result(begun.place, lambda: _fetched(blob)))
    if isinstance(found, Unfinished):
        if hf.clock.now() - begun.at > settings.threshold:
            raise Lost(analyser.name, f"the analysis has not ended within {settings.threshold}")
        raise TryAgain("the service is still reading it", after=found.after, counts=False)
    try:
        analysis = bounded(found, most_pages=settings.max_pages, most_characters=settings.max_characters)
    except Unreadable as error:
        raise GiveUp(str(error), failure_type=error.reason) from None
    _asked(blobs.name, lambda: blobs.put(analysis_blob(blob), analysis.to_json()))
    return len(analysis.pages)


def _remembered(blob: str) -> Analysis:
    return Analysis.from_json(_fetched(analysis_blob(blob)))


def _embed(blob: str, texts: list[str]) -> str:
    """Keep the vectors beside the file, and say under which name: a step outlives its document, and they must not."""
    name = vectors_blob(blob, texts)
    made = vectors.packed(_asked(embedder().name, lambda: embedder().embed(texts)))
    _asked(blobs.name, lambda: blobs.put(name, made))
    return name


def _forget(*names: str) -> None:
    """Remove what no one needs any more. What can't be removed at this moment is collected later."""
    with contextlib.suppress(Trouble):
        for name in names:
            blobs.remove(name)


def _fetched(blob: str) -> bytes:
    return _asked(blobs.name, lambda: blobs.get(blob))


def _asked(provider: str, question: Callable[[], T]) -> T:
    """What a service answers, or what its silence means for the run."""
    try:
        return breaker.ask(provider, question)
    except Away as error:
        raise TryAgain(str(error), after=error.wait, counts=False) from None
    except BlobMissing:
        raise GiveUp("its file is not there", failure_type="FILE_MISSING") from None
    except Unreadable as error:
        raise GiveUp(str(error), failure_type=error.reason) from None
    except Lost:
        raise
    except Trouble as error:
        raise TryAgain(str(error), after=error.after) from None


@hf.schedule(every=timedelta(minutes=5), name="extraction.collect", queue=QUEUE, audit=False)
def collect(ctx: Context) -> int:
    """Remove files of which no document knows: their rows were never written, or are deleted."""
    return sweep()


def sweep() -> int:
    """Remove what was kept long enough ago and no document needs; how many files."""
    before = hf.clock.now() - settings.collect_after
    removed = 0
    for name in store.unneeded(kept.name for kept in blobs.all() if kept.at < before):
        blobs.remove(name)
        removed += 1
    return removed
