"""Engine: all that extraction asks of Holdfast. A document is one run, and what costs money is a step of it.

    fetch ─▶ begin (billed once) ─▶ read, put off while the service is at it ─▶ embed, a step a batch ─▶ finish

The run ends in the transaction that has its fields, passages and vectors: all of it is there, or nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any, TypeVar

from apps.database import Database
from apps.extraction import settings as configured
from apps.extraction.breaker import Breaker
from apps.extraction.chunks import chunks
from apps.extraction.fields import fields
from apps.extraction.library import Library
from apps.extraction.providers import Analyser, Analysis, BlobMissing, Blobs, Embedder, Trouble, Unfinished, Unreadable
from apps.extraction.providers.blobs import open_blobs
from apps.extraction.providers.choosing import open_analyser
from apps.extraction.providers.embeddings import open_embedder
from apps.extraction.providers.reading import analysis_of
from apps.extraction.tables import Base
from apps.extraction.vectors import opened
from apps.extraction.views import complete
from holdfast import Context, GiveUp, Holdfast, Retry, TryAgain

T = TypeVar("T")
QUEUE = "extraction"

settings = configured.load()
hf = Holdfast()
database = Database(
    hf.settings.url, Base.metadata, prepare=hf.start, complete=complete(settings.dimensions), opened=opened
)
library = Library(database)
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


@hf.job(
    name="extraction.process",
    queue=QUEUE,
    max_attempts=settings.max_attempts,
    timeout=settings.threshold,
    on_timeout="retry",
    on_crash="retry",
    retry=Retry(steps=1, delay=settings.retry_delay),
)
def process(ctx: Context, document_id: str) -> dict[str, Any]:
    """Read a document and keep what it says."""
    kept = library.kept(document_id)
    if kept is None:
        raise GiveUp("the document was deleted", failure_type="DELETED")
    document = _document(kept.blob)
    ctx.progress(0, 3, "reading")
    place = ctx.step("begin", _begin, document)
    analysis = analysis_of(ctx.step("read", _read, place, document))
    found = chunks(analysis.pages)
    vectors: list[list[float]] = []
    for start in range(0, len(found), settings.batch):
        ctx.check()
        ctx.progress(1 + start / len(found), 3, f"passage {start} of {len(found)}")
        vectors += ctx.step(f"embed {start}", _embed, [chunk.text for chunk in found[start : start + settings.batch]])
    ctx.progress(3, 3, "keeping it")
    result = {"pages": len(analysis.pages), "passages": len(found)}
    with database.write() as session:
        library.keep(session, document_id, analysis, fields(analysis), found, vectors, embedded_by=embedder().name)
        ctx.finish(result, connection=session)
    return result


def _document(blob: str) -> bytes:
    try:
        return _asked(blobs.name, lambda: blobs.get(blob))
    except BlobMissing:
        raise GiveUp("its file is not there", failure_type="FILE_MISSING") from None


def _begin(document: bytes) -> str:
    return _asked(analyser.name, lambda: analyser.start(document))


def _read(place: str, document: bytes) -> dict[str, Any]:
    """The analysis; one that takes longer is asked for again later, and holds no worker meanwhile."""
    found = _asked(analyser.name, lambda: analyser.result(place, document))
    if isinstance(found, Unfinished):
        raise TryAgain("the service is still reading it", after=found.after, counts=False)
    assert isinstance(found, Analysis)
    return asdict(found)


def _embed(texts: list[str]) -> list[list[float]]:
    return _asked(embedder().name, lambda: embedder().embed(texts))


def _asked(provider: str, ask: Callable[[], T]) -> T:
    """What a service answers. One that is known to be away is not asked, and no attempt is used up."""
    breaker = Breaker(
        database,
        provider,
        failures=settings.breaker_failures,
        pause=settings.breaker_pause,
        now=hf.clock.now,
    )
    if (wait := breaker.wait()) is not None:
        raise TryAgain(f"{provider} is left alone, it failed too often", after=wait, counts=False)
    try:
        answer = ask()
    except Unreadable as error:
        breaker.succeeded()
        raise GiveUp(str(error), failure_type=error.reason) from None
    except Trouble as error:
        if error.throttled:
            breaker.succeeded()  # it is there, and asks us to wait
        else:
            breaker.failed(str(error))
        raise TryAgain(str(error), after=error.after) from None
    breaker.succeeded()
    return answer


@hf.schedule(every=timedelta(minutes=5), name="extraction.collect", queue=QUEUE, audit=False)
def collect(ctx: Context) -> int:
    """Remove files of which no document knows: their rows were never written, or are deleted."""
    return sweep()


def sweep() -> int:
    """Remove what was kept long enough ago without a document; how many."""
    before = hf.clock.now() - settings.collect_after
    old = [kept.name for kept in blobs.all() if kept.at < before]
    unknown = library.unknown(old)
    for name in unknown:
        blobs.remove(name)
    return len(unknown)
