"""The jobs of the tour, one for each thing there is to see."""

from __future__ import annotations

import time
from datetime import timedelta

from holdfast import Context, Retry
from system.app import hf

QUEUE, LETTERS, LETTERS_AT_MOST = "tour", "tour.letters", 3

hf.queue(LETTERS, max_queued=LETTERS_AT_MOST, concurrency=1)


@hf.job(name="tour.resize", queue=QUEUE)
def resize(ctx: Context, pictures: int) -> int:
    """Slow work that tells how far it is."""
    for number in range(pictures):
        ctx.check()
        ctx.progress(number, pictures, f"picture {number + 1}")
        time.sleep(0.25)
    ctx.progress(pictures, pictures, "all resized")
    return pictures


@hf.job(name="tour.index", queue=QUEUE, key="document")
def index(ctx: Context, document: str, version: int) -> int:
    """One run of a document at a time: the others wait for their turn."""
    ctx.log.info("indexing version %d of %s", version, document)
    time.sleep(0.8)
    return version


@hf.job(name="tour.import_feed", queue=QUEUE)
def import_feed(ctx: Context, address: str) -> None:
    """Fails, on purpose."""
    ctx.log.warning("%s looks odd", address)
    raise ValueError(f"{address} is not a feed")


@hf.job(name="tour.send_mail", queue=QUEUE, max_attempts=3, retry=Retry(delay=timedelta(seconds=2), jitter=0))
def send_mail(ctx: Context, to: str) -> str:
    """Fails at first, waits, and is tried again; the step that was done is not done twice."""
    text = ctx.step("write", lambda: f"Dear {to}, …")
    if ctx.run.tries == 1:
        raise ConnectionError("the mail server is busy")
    return text


@hf.job(name="tour.crawl", queue=QUEUE, timeout=2)
def crawl(ctx: Context, site: str) -> None:
    """Goes on until its time is up."""
    while not ctx.cancelled:
        time.sleep(0.05)


@hf.job(name="tour.audit", queue=QUEUE)
def audit(ctx: Context, month: str) -> None:
    """Goes on until someone cancels it."""
    while True:
        ctx.check()
        time.sleep(0.05)


@hf.job(name="tour.letter", queue=LETTERS)
def letter(number: int) -> int:
    """Of a queue that takes so many and no more."""
    time.sleep(0.3)
    return number


@hf.build(name="tour.press", queue=QUEUE, timeout=60)
def press(ctx: Context, size: str, fingerprint: str) -> str:
    """Made once, for all who wait for it."""
    for part in range(4):
        ctx.progress(part, 4, "setting it up")
        time.sleep(0.3)
    return f"press {size} {fingerprint}"


@hf.job(name="tour.print_poster", queue=QUEUE)
def print_poster(ctx: Context, title: str) -> str:
    """Waits for the press, then leaves a file."""
    [machine] = ctx.needed
    kept = ctx.artifact("poster.svg", poster(title))
    return f"{kept.path} by {machine}"


def poster(title: str) -> str:
    """A picture with a title, as SVG."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 200" role="img">\n'
        '<rect width="320" height="200" fill="#12324f"/><circle cx="240" cy="60" r="28" fill="#f4d58d"/>\n'
        '<path d="M150 180 165 70h20l15 110z" fill="#e9edf1"/>\n'
        f'<text x="20" y="40" fill="#e9edf1" font-size="20">{title}</text>\n</svg>\n'
    )


@hf.job(name="tour.count_words", queue=QUEUE)
def count_words(chapter: str) -> int:
    """A child of `count_book`."""
    time.sleep(0.2)
    return len(chapter.split())


@hf.job(name="tour.count_book", queue=QUEUE)
def count_book(ctx: Context, chapters: list[str]) -> int:
    """Submits children and waits for them without holding a worker."""
    return sum(ctx.gather(*(ctx.submit_child(count_words, chapter) for chapter in chapters)))


@hf.schedule(every=10, name="tour.tidy", queue=QUEUE, audit=False)
def tidy(ctx: Context) -> str:
    """By the clock, each slot once."""
    ctx.log.info("tidied up")
    return "tidied up"


film = hf.pipeline("tour.film", queue=QUEUE)


@film.stage()
def script(ctx: Context, text: str) -> list[str]:
    """The segments that the next stages fall into."""
    return ctx.segments(sentence.strip() for sentence in text.split(".") if sentence.strip())


@film.stage(after=script, each="sentence", max_attempts=2, retry=Retry(delay=timedelta(seconds=1), jitter=0))
def audio(ctx: Context, sentence: str) -> str:
    """A segment that fails is tried again, alone."""
    time.sleep(0.3)
    if ctx.run.segment == "1" and ctx.run.tries == 1:
        raise OSError("the microphone fell over")
    return f"sound of {sentence!r}"


@film.stage(after=audio, each="sentence")
def pictures(sentence: str, audio: str) -> str:
    time.sleep(0.3)
    return f"{sentence.split()[-1]} with {audio}"


@film.stage(after=pictures)
def render(segments: list[str]) -> list[str]:
    time.sleep(0.5)
    return segments
