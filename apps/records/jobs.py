"""Jobs: all that the archive asks of Holdfast: one process, one run of a document at a time, four steps in each run.

    EXTRACT ──▶ CLASSIFY ──▶ INTERPRET ──▶ VALIDATE

A run has a process of its own: one that never returns is killed when its time is over, and a library that crashes takes
no one with it. It imports this module and nothing of the web, so that it starts soon.
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
NICE = 10  # how much a run steps back for whoever answers requests

given = Settings.load()
hf = Holdfast(solo=True, queues=(QUEUE, UPKEEP), concurrency=given.concurrency)
blobs = Blobs(given.folder / "blobs")


@dataclass(frozen=True)
class Extracted:
    """How much text there is."""

    pages: int
    characters: int


@dataclass(frozen=True)
class Processed:
    """What a run comes to; the pages and fields are in the archive."""

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
    timeout=given.timeout,
    max_attempts=1,
    on_crash="fail",
    on_shutdown="fail",
    audit=True,  # the history of a document is kept for ever
    retry=Retry(steps=given.step_attempts, delay=given.step_pause, jitter=0),
    isolation="process",
    only_from_code=True,  # a run without its row in processing_runs would belong to no document
    start_at="/documents",
)
def process(ctx: Context, document_id: str, sha256: str) -> Processed:
    """One document from its file to its fields."""
    os.nice(NICE)
    work = Work(ctx.run.id, blobs.path(sha256), sha256)
    ctx.progress(0, len(STEPS), STEPS[0])
    try:
        extracted = ctx.step("EXTRACT", work.extract)
    except OSError as error:
        raise GiveUp(f"its file can't be read: {error.strerror}", failure_type="FILE_UNAVAILABLE") from None
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
    """What a run has in hand. It has one attempt, so no step needs to find what an earlier process left."""

    def __init__(self, run_id: str, path: Path, sha256: str) -> None:
        self._run_id, self._path, self._sha256 = run_id, path, sha256
        self._pages: Sequence[str] = ()
        self._fields: Sequence[FoundField] = ()

    def extract(self) -> Extracted:
        """Read the document's text."""
        if not blobs.is_whole(self._sha256):
            raise GiveUp("its file is not what was handed in", failure_type="FILE_CHANGED")
        try:
            kind = kind_of(self._path)
            if kind is None:
                raise Unreadable("UNSUPPORTED", "it is neither PDF, DOCX, EML nor text")
            self._pages = read(self._path, kind, limits=given.limits)
        except Unreadable as error:
            raise GiveUp(str(error), failure_type=error.why) from None
        return Extracted(len(self._pages), sum(map(len, self._pages)))

    def classify(self) -> Classification:
        """Say what the document is."""
        return classify(self._pages)

    def interpret(self, kind: str) -> int:
        """Find the fields, and keep them with the text that they stand in; how many there are."""
        self._fields = interpret(self._pages, kind=kind)
        save(hf.settings.url, self._run_id, self._pages, self._fields)
        return len(self._fields)

    def validate(self, kind: str, today: str) -> list[Finding]:
        """Say what a person should look at."""
        return validate(kind, self._fields, today=today)


@hf.schedule("17 * * * *", name="records.collect", queue=UPKEEP)
def collect() -> int:
    """Remove the files that no document has: their upload failed after they were written."""
    from apps.records import documents

    return documents.collect()
