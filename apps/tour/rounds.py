"""Rounds: what visitors of the tour ask for. Every few seconds one of each; a run's tag `round` says which."""

from __future__ import annotations

from apps.tour import jobs
from holdfast import QueueFull, Run

CHAPTERS = ["Call me Ishmael", "It was the best of times", "The sky above the port"]
SCRIPT = "The rain falls. The cat sleeps. The moon rises."
PRESSES = ("A2", "A3")
LETTERS = 5


def submit(number: int) -> Run[None]:
    """Queue a round; the run that is to be cancelled."""
    tags = {"round": str(number)}
    jobs.resize.using(tags=tags).submit(pictures=12)
    for version in (1, 2, 3):
        jobs.index.using(tags=tags).submit(document="handbook", version=version)
    jobs.send_mail.using(tags=tags).submit(to="Ada")
    jobs.count_book.using(tags=tags).submit(chapters=CHAPTERS)
    jobs.film.using(tags=tags).submit(text=SCRIPT)
    for title in ("Lighthouse", "Harbour", "Horizon"):
        machine = jobs.press.of(size=PRESSES[number % len(PRESSES)], fingerprint=f"round-{number}")
        jobs.print_poster.using(tags=tags, after=[machine]).submit(title=title)
    if number % 3 == 1:
        jobs.import_feed.using(tags=tags).submit(address="https://example.org/not-a-feed")
        jobs.crawl.using(tags=tags).submit(site="example.org")
    letters(tags)
    return jobs.audit.using(tags=tags).submit(month="May")


def letters(tags: dict[str, str]) -> int:
    """More letters than their queue takes; how many it took."""
    for sent in range(LETTERS):
        try:
            jobs.letter.using(tags=tags).submit(number=sent)
        except QueueFull:
            return sent
    return LETTERS
