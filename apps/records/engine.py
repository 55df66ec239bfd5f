"""Engine: all of the archive's use of Holdfast: one process, one run of a document at a time, four steps in each run.

    EXTRACT ──▶ CLASSIFY ──▶ INTERPRET ──▶ VALIDATE

A run has a process of its own: one that never returns is killed when its time is over, and a library that crashes takes
no one with it. Each step keeps what it found in the archive's tables and says in a few words what it was.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from apps.records import archive, settings
from apps.records.blobs import Blobs
from apps.records.classify import Classification, classify
from apps.records.database import Database
from apps.records.finding import interpret
from apps.records.kinds import kind_of
from apps.records.reading import read
from apps.records.tables import Document
from apps.records.unreadable import Unreadable
from apps.records.validate import Finding, validate
from holdfast import Context, GiveUp, Holdfast, Retry

STEPS = ("EXTRACT", "CLASSIFY", "INTERPRET", "VALIDATE")
JOB, QUEUE, UPKEEP = "records.process", "records", "records.upkeep"
NICE = 10  # how much a run steps back for whoever answers requests
YOUNG = 3600.0  # seconds that a file without a document is left alone: it may be on its way

given = settings.load()
hf = Holdfast(solo=True, queues=(QUEUE, UPKEEP), concurrency=given.concurrency)
database = Database(hf.settings.url, prepare=hf.start)
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
)
def process(ctx: Context, document_id: str) -> Processed:
    """One document from its file to its fields."""
    os.nice(NICE)
    run_id = ctx.run.id
    ctx.progress(0, len(STEPS), STEPS[0])
    try:
        extracted = ctx.step("EXTRACT", extract, run_id, document_id)
    except OSError as error:
        raise GiveUp(f"its file can't be read: {error}", failure_type="FILE_UNAVAILABLE") from error
    ctx.progress(1, len(STEPS), STEPS[1])
    classified = ctx.step("CLASSIFY", classified_as, run_id)
    ctx.progress(2, len(STEPS), STEPS[2])
    fields = ctx.step("INTERPRET", interpreted, run_id, classified.kind)
    ctx.progress(3, len(STEPS), STEPS[3])
    findings = ctx.step("VALIDATE", validated, run_id, classified.kind, ctx.run.created_at.date().isoformat())
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


def extract(run_id: str, document_id: str) -> Extracted:
    """Read the document's text and keep it, page by page."""
    with database.read() as session:
        document = session.get_one(Document, document_id)
    if not blobs.is_whole(document.sha256):
        raise GiveUp("its file is not what was handed in", failure_type="FILE_CHANGED")
    path = blobs.path(document.sha256)
    try:
        kind = kind_of(path)
        if kind is None:
            raise Unreadable("UNSUPPORTED", "it is neither PDF, DOCX, EML nor text")
        pages = read(path, kind, limits=given.limits)
    except Unreadable as error:
        raise GiveUp(str(error), failure_type=error.why) from error
    with database.write() as session:
        archive.keep_pages(session, run_id, pages)
    return Extracted(len(pages), sum(map(len, pages)))


def classified_as(run_id: str) -> Classification:
    """Say what the document is."""
    with database.read() as session:
        return classify(archive.pages(session, run_id))


def interpreted(run_id: str, kind: str) -> int:
    """Find the fields and keep them; how many there are."""
    with database.read() as session:
        pages = archive.pages(session, run_id)
    found = interpret(pages, kind=kind)
    with database.write() as session:
        archive.keep_fields(session, run_id, found)
    return len(found)


def validated(run_id: str, kind: str, today: str) -> list[Finding]:
    """Say what a person should look at."""
    with database.read() as session:
        return validate(kind, archive.found(session, run_id), today=today)


@hf.schedule("17 * * * *", name="records.collect", queue=UPKEEP)
def collect() -> int:
    """Remove the files that no document has: their upload failed after they were written."""
    removed = 0
    for digest in list(blobs.older_than(YOUNG)):
        with database.write() as session:
            # Whoever is about to insert a document with these bytes waits, and then sees that they are gone.
            _alone(session)
            if session.scalar(select(Document.id).where(Document.sha256 == digest).limit(1)) is None:
                blobs.remove(digest)
                removed += 1
    return removed


def _alone(session: Session) -> None:
    if session.connection().dialect.name == "postgresql":
        session.execute(text("lock table documents in share row exclusive mode"))
