"""Sample runs for screenshots: every state of a run, and hostile texts that must be escaped."""

from __future__ import annotations

import logging
import struct
import time
import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

from holdfast import Context, Holdfast, Retry

HOSTILE = (
    "<script>alert('x')</script> <img src=x onerror=alert(1)> \x1b[31mred\x1b[0m \x07 \u202egnp.exe\u2066 "
    "\r\b\x00?".replace("\x00", "")
    + " \u2028 'quotes' \"and\" `ticks` {{ 7*7 }} 👩‍👩‍👧"
)


def picture(width: int = 240, height: int = 120) -> bytes:
    """Return a small PNG image."""
    rows = b"".join(
        b"\0" + b"".join(bytes((column, 255 - row, 160)) for column in range(width)) for row in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def application(folder: Path) -> Holdfast:
    """Return a Holdfast with jobs of all kinds."""
    hf = Holdfast(f"sqlite:///{folder / 'sample.db'}", artifacts=folder / "artifacts", concurrency=6)
    log = logging.getLogger("documents")
    log.setLevel(logging.INFO)

    @hf.job(name="mail.send", queue="mail", retry=Retry(step_attempts=1))
    def send(to: str) -> str:
        if to.endswith("7"):
            raise ConnectionError(f"smtp.example refused {to}: 421 try later")
        return f"sent to {to}"

    @hf.job(name="documents.render", key="document_id", queue="documents", max_attempts=3)
    def render(ctx: Context, document_id: str, pages: int = 3) -> dict[str, Any]:
        for page in range(pages):
            ctx.step(f"page {page + 1}", time.sleep, 0.02)
            log.info("rendered page %d of %s", page + 1, document_id)
            ctx.progress(page + 1, pages, f"page {page + 1}")
        ctx.artifact("report.json", b'{"pages": 3, "title": "Annual report"}')
        ctx.artifact("cover.png", picture())
        ctx.artifact("notes.txt", HOSTILE.encode("utf-8", "replace"))
        return {"document": document_id, "pages": pages}

    @hf.job(name="reports.monthly", queue="reports", timeout=600)
    def monthly(ctx: Context, month: str) -> None:
        log.warning("the figures for %s are late", month)
        for number in range(100_000):
            if number % 20 == 0:
                log.info("row %d of the ledger", number)
            ctx.progress(number, 100_000, "adding up the ledger")
            ctx.check()
            time.sleep(0.1)

    @hf.job(name="feeds.fetch", max_attempts=3, queue="feeds")
    def fetch(url: str) -> None:
        try:
            dict[str, str]()["items"]
        except KeyError as error:
            raise ValueError(f"no items in {url}") from error

    @hf.job(name="hostile.text", queue="feeds")
    def hostile(text: str, big: str = "") -> str:
        log.error("%s", text)
        raise RuntimeError(text)

    @hf.job(name="slow.timeout", timeout=1, isolation="process")
    def too_slow() -> None:
        time.sleep(30)

    @hf.schedule("*/15 * * * *", tz="Europe/Berlin", name="feeds.hourly", queue="feeds")
    def hourly(ctx: Context) -> None: ...

    @hf.schedule("0 6 * * *", tz="UTC", name="reports.daily", queue="reports")
    def daily(ctx: Context) -> None: ...

    film = hf.pipeline("film")

    @film.stage()
    def script(ctx: Context, text: str) -> list[str]:
        return ctx.segments(text.split())

    @film.stage(after=script, each="segment")
    def audio(ctx: Context, segment: str) -> str:
        if segment == "bad":
            raise ValueError("no voice for 'bad'")
        time.sleep(0.05)
        return segment.upper()

    @film.stage(after=audio)
    def cut(ctx: Context, segments: list[str]) -> str:
        return " ".join(segments)

    @hf.build(name="environment")
    def environment(ctx: Context, configuration_id: str, fingerprint: str) -> str:
        time.sleep(0.1)
        return f"{configuration_id} is ready"

    hf.queue("mail", max_queued=5000)
    return hf


def fill(hf: Holdfast, *, seconds: float = 6) -> None:
    """Submit runs of each kind, and wait while the caller's worker executes some of them."""
    jobs = hf.jobs
    jobs["mail.send"].submit_many([{"to": f"reader-{number}"} for number in range(400)])
    jobs["documents.render"].submit_many([{"document_id": f"doc-{number % 12}"} for number in range(30)])
    jobs["feeds.fetch"].submit(url="https://feeds.example/all.xml")
    jobs["hostile.text"].submit(text=HOSTILE)
    jobs["hostile.text"].submit(text="A very long text. " * 30_000)
    jobs["slow.timeout"].submit()
    jobs["film"].submit(text="one two three four five six")
    jobs["film"].submit(text="one two bad four")
    jobs["environment"].submit(configuration_id="python", fingerprint="sha256:0123456789abcdef")
    for month in ("2026-09", "2026-10"):
        jobs["reports.monthly"].submit(month=month)
    later = jobs["mail.send"].using(delay=timedelta(hours=2))
    later.submit(to="someone-else")
    jobs["documents.render"].using(tags={"tenant": "acme", "size": "<b>large</b>"}, priority=5).submit(
        document_id="doc-tagged", pages=2
    )
    hf.queues.pause("archive", note="the archive is being migrated")
    jobs["mail.send"].using(queue="archive").submit(to="the-archive")
    cancelled = later.submit(to="never")
    hf.cancel(cancelled, reason="submitted by mistake")
    time.sleep(seconds)
