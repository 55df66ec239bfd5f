"""Rounds: what the tour's submitter submits, in small groups; a run's tag `round` says which round it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import QueueFull
from system.tour import jobs

CHAPTERS = ["Call me Ishmael", "It was the best of times", "The sky above the port"]
SCRIPT = "The rain falls. The cat sleeps. The moon rises."
TITLES = ("Lighthouse", "Harbour", "Horizon")
PRESSES = ("A2", "A3")
LETTERS = 5


def acts(number: int) -> Iterator[str]:
    """Submit a round, a little between one `next` and the following; what was asked for."""
    tags = {"round": str(number)}
    to_cancel = jobs.audit.using(tags=tags).submit(month="May")
    yield "an audit"
    jobs.resize.using(tags=tags).submit(pictures=12)
    yield "pictures to resize"
    for version in (1, 2, 3):
        jobs.index.using(tags=tags).submit(document="handbook", version=version)
    yield "three versions of one document"
    jobs.send_mail.using(tags=tags).submit(to="Ada")
    yield "a mail"
    to_cancel.cancel(reason="someone changed their mind")
    yield "no audit after all"
    jobs.film.using(tags=tags).submit(text=SCRIPT)
    yield "a film"
    posters(number, tags)
    yield "posters"
    if number % 3 == 1:
        jobs.import_feed.using(tags=tags).submit(address="https://example.org/not-a-feed")
        jobs.crawl.using(tags=tags).submit(site="example.org")
        yield "what can't work"
    letters(tags)
    yield "more letters than there is room for"
    jobs.count_book.using(tags=tags).submit(chapters=CHAPTERS)
    yield "a book to count"


def posters(number: int, tags: dict[str, str]) -> None:
    """Three that wait for one press, which is made for this round."""
    machine = jobs.press.of(size=PRESSES[number % len(PRESSES)], fingerprint=f"round-{number}")
    for title in TITLES:
        jobs.print_poster.using(tags=tags, after=[machine]).submit(title=title)


def letters(tags: dict[str, str]) -> int:
    """More letters than their queue takes; how many it took."""
    for sent in range(LETTERS):
        try:
            jobs.letter.using(tags=tags).submit(number=sent)
        except QueueFull:
            return sent
    return LETTERS
