"""Checks of the tour: that its first round of work has come to what it must."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from apps.shared.checks import CheckClient, Checked, difference

from system.tour import rounds
from system.tour.jobs import LETTERS_AT_MOST, poster

Run = dict[str, Any]
ROUND = "round=1"
FILM = [f"{word} with sound of {sentence!r}" for sentence, word in (
    ("The rain falls", "falls"), ("The cat sleeps", "sleeps"), ("The moon rises", "rises"),
)]  # fmt: skip


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait for the first round to end, then look at it piece by piece."""
    found = client.until(lambda: _ended(client), "every run of the first round has ended")
    yield Checked(what=f"{sum(map(len, found.values()))} runs of the first round have ended")
    for what, fault in CHECKS.items():
        yield Checked(what=what, fault=fault(client, found))


def _runs(client: CheckClient, **query: Any) -> list[Run]:
    """The newest hundred runs that match."""
    found: list[Run] = client.get("/api/runs", **query, limit=100)["items"]
    return found


def _ended(client: CheckClient) -> dict[str, list[Run]] | None:
    """The runs of the first round by their job, oldest first, once all have ended."""
    found = _runs(client, tag=ROUND)
    if not found or any(run["state"] in ("queued", "running") for run in found):
        return None
    if not any(run["job"] == "tour.count_book" for run in found):
        return None  # the last one of a round: it is still being submitted
    by_job: dict[str, list[Run]] = {}
    for run in reversed(found):
        by_job.setdefault(run["job"], []).append(run)
    return by_job


Found = dict[str, list[Run]]
Checker = Callable[[CheckClient, Found], str | None]


def _results(found: Found, job: str) -> list[Any]:
    return [(run["state"], run["result"]) for run in found.get(job, [])]


def _progress(client: CheckClient, found: Found) -> str | None:
    return difference(_results(found, "tour.resize"), [("succeeded", 12)])


def _key(client: CheckClient, found: Found) -> str | None:
    wrong = difference(_results(found, "tour.index"), [("succeeded", version) for version in (1, 2, 3)])
    turns = [(run["started_at"], run["finished_at"]) for run in found["tour.index"]]
    overlap = any(ended > started for (_, ended), (started, _) in pairwise(turns))
    return wrong or ("two ran at the same time" if overlap else None)


def _retry(client: CheckClient, found: Found) -> str | None:
    [run] = found["tour.send_mail"]
    return difference((run["state"], run["result"], run["tries"]), ("succeeded", "Dear Ada, …", 2))


def _failure(client: CheckClient, found: Found) -> str | None:
    [run] = found["tour.import_feed"]
    wrong = difference((run["state"], run["failure_type"]), ("failed", "ERROR"))
    return wrong or (None if "is not a feed" in run["error"] else f"its error is {run['error']!r}")


def _endings(client: CheckClient, found: Found) -> str | None:
    states = {job: found[job][0]["state"] for job in ("tour.crawl", "tour.audit")}
    return difference(states, {"tour.crawl": "timed_out", "tour.audit": "cancelled"})


def _build(client: CheckClient, found: Found) -> str | None:
    results = [result for _, result in _results(found, "tour.print_poster")]
    presses = _runs(client, job="tour.press")
    made = [run for run in presses if run["result"] == f"press {rounds.PRESSES[1]} round-1"]
    same = {str(result).partition(" by ")[2] for result in results}
    return difference((len(results), len(made), same), (3, 1, {f"press {rounds.PRESSES[1]} round-1"}))


def _artifact(client: CheckClient, found: Found) -> str | None:
    run = found["tour.print_poster"][0]
    [kept] = client.get(f"/api/runs/{run['id']}/artifacts")["items"]
    content = client.http.get(f"/api/runs/{run['id']}/artifacts/poster.svg").content
    expected = poster(run["args"]["title"]).encode()
    return difference((content, kept["sha256"]), (expected, hashlib.sha256(expected).hexdigest()))


def _pipeline(client: CheckClient, found: Found) -> str | None:
    [run] = found["tour.film"]
    wrong = difference((run["state"], run["result"]), ("succeeded", FILM))
    segments = [part for part in _runs(client, parent=run["id"], parts="true") if part["segment"] == "1"]
    again = sorted(part["tries"] for part in segments)
    return wrong or difference(again, [1, 2])


def _children(client: CheckClient, found: Found) -> str | None:
    words = sum(len(chapter.split()) for chapter in rounds.CHAPTERS)
    return difference(_results(found, "tour.count_book"), [("succeeded", words)])


def _bound(client: CheckClient, found: Found) -> str | None:
    return difference(_results(found, "tour.letter"), [("succeeded", number) for number in range(LETTERS_AT_MOST)])


def _schedule(client: CheckClient, found: Found) -> str | None:
    slots = client.until(lambda: _runs(client, job="tour.tidy", state="succeeded") or None, "a slot has run")
    return difference({run["result"] for run in slots}, {"tidied up"})


CHECKS: dict[str, Checker] = {
    "a slow run has told its progress and come to its result": _progress,
    "three runs of one key ran one at a time, in order": _key,
    "a run that failed at first succeeded at its second try": _retry,
    "a run that fails has ended with its error": _failure,
    "one run was stopped by its timeout, one was cancelled": _endings,
    "three runs waited for one build, which was made once": _build,
    "a file that a run made comes back as it was written": _artifact,
    "a pipeline of three segments; one of them was tried again": _pipeline,
    "a run has added up what its children counted": _children,
    f"a queue that takes {LETTERS_AT_MOST} took {LETTERS_AT_MOST} of {rounds.LETTERS}": _bound,
    "a schedule's slot has run": _schedule,
}
