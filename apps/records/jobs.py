"""Jobs: everything that the application uses of Holdfast.

One process serves the pages and runs the jobs. A document has at most one running run, and each run has four steps:

    EXTRACT ──▶ CLASSIFY ──▶ INTERPRET ──▶ VALIDATE

Each run has its own process. So it can be killed at its timeout, and a library that crashes affects no other run. The
process of a run imports this module but no web modules, so that it starts quickly.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apps.records.blobs import Blobs
from apps.records.classify import Classification, classify
from apps.records.extractors import interpret
from apps.records.extractors.fields import FoundField
from apps.records.file_types import kind_of
from apps.records.readers import read
from apps.records.save_results import save
from apps.records.settings import Settings
from apps.records.unreadable import Unreadable
from apps.records.validate import Finding, validate
from holdfast import Context, GiveUp, Holdfast, Retry

STEPS = ("EXTRACT", "CLASSIFY", "INTERPRET", "VALIDATE")
JOB, QUEUE, UPKEEP = "records.process", "records", "records.upkeep"
NICE = 10  # lower CPU priority for runs, so that the web server stays responsive

settings = Settings.load()
hf = Holdfast(single_process=True, queues=(QUEUE, UPKEEP), concurrency=settings.concurrency)
blobs = Blobs(settings.folder / "blobs")


@dataclass(frozen=True)
class Extracted:
    """The amount of text in a document."""

    pages: int
    characters: int


@dataclass(frozen=True)
class Processed:
    """The result of a run. Its pages and fields are stored in the application's own tables."""

    document_class: str
    score: float
    evidence: list[str]
    pages: int
    characters: int
    fields: int
    findings: list[Finding]


@hf.job(
    name=JOB,
    queue=QUEUE,
    key="document_id",
    timeout=settings.timeout,
    max_attempts=1,
    on_crash="fail",
    on_shutdown="fail",
    keep_forever=True,  # never deleted by retention: the history of a document stays complete
    retry=Retry(step_attempts=settings.step_attempts, delay=settings.step_pause, jitter=0),
    isolation="process",
    only_from_code=True,  # a run without its row in processing_runs would belong to no document
    start_at="/documents",
)
def process(ctx: Context, document_id: str, sha256: str) -> Processed:
    """Process one document: read its text, classify it, find its fields and validate them."""
    os.nice(NICE)
    work = Work(ctx.run.id, blobs.path(sha256), sha256)
    ctx.progress(0, len(STEPS), STEPS[0])
    try:
        extracted = ctx.step("EXTRACT", work.extract)
    except OSError as error:
        raise GiveUp(
            f"the document's file can't be read ({error.strerror}); upload it again", failure_type="FILE_UNAVAILABLE"
        ) from None
    ctx.progress(1, len(STEPS), STEPS[1])
    classified = ctx.step("CLASSIFY", work.classify)
    ctx.progress(2, len(STEPS), STEPS[2])
    fields = ctx.step("INTERPRET", work.interpret, classified.kind)
    ctx.progress(3, len(STEPS), STEPS[3])
    findings = ctx.step("VALIDATE", work.validate, classified.kind, ctx.run.created_at.date().isoformat())
    ctx.progress(len(STEPS), len(STEPS), "done")
    return Processed(
        document_class=classified.kind,
        score=classified.score,
        evidence=classified.evidence,
        pages=extracted.pages,
        characters=extracted.characters,
        fields=fields,
        findings=findings,
    )


class Work:
    """The intermediate results of a run. A run has only one attempt, so they can stay in memory."""

    def __init__(self, run_id: str, path: Path, sha256: str) -> None:
        self._run_id, self._path, self._sha256 = run_id, path, sha256
        self._pages: Sequence[str] = ()
        self._fields: Sequence[FoundField] = ()

    def extract(self) -> Extracted:
        """Read the text of the document."""
        if not blobs.is_unchanged(self._sha256):
            raise GiveUp("the stored file has changed since its upload; upload it again", failure_type="FILE_CHANGED")
        try:
            kind = kind_of(self._path)
            if kind is None:
                raise Unreadable("UNSUPPORTED", "the file is not a PDF, DOCX, EML or text file")
            self._pages = read(self._path, kind, limits=settings.limits)
        except Unreadable as error:
            raise GiveUp(str(error), failure_type=error.failure_type) from None
        return Extracted(len(self._pages), sum(map(len, self._pages)))

    def classify(self) -> Classification:
        """Decide the class of the document."""
        return classify(self._pages)

    def interpret(self, kind: str) -> int:
        """Find the fields, save them with the text, and return their number."""
        self._fields = interpret(self._pages, kind=kind)
        save(hf.settings.url, self._run_id, self._pages, self._fields)
        return len(self._fields)

    def validate(self, kind: str, today: str) -> list[Finding]:
        """List what a person should check."""
        return validate(kind, self._fields, today=today)


@hf.schedule("17 * * * *", name="records.delete_unused_files", queue=UPKEEP)
def delete_unused_files() -> int:
    """Delete files that belong to no document, because their upload failed after they were stored."""
    from apps.records import documents

    return documents.delete_unused_files()
