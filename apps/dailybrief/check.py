"""Checks of the daily brief: the sample articles were read, grouped and published, and each slot ran once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from apps.dailybrief.samples.articles import ARTICLES, NEWSPAPERS
from apps.shared.checks import CheckClient, Checked, difference

EXPECTED = {article.slug: article.event for article in ARTICLES if article.at <= 1}
"""The event of each article that is published at the start, by the last part of its URL."""


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait for the first brief and its edition, then check them."""
    brief = client.until(
        lambda: _complete_brief(client), "every sample article is in today's brief, and the brief is published"
    )
    yield Checked(what=f"{len(brief['events'])} events of {len(NEWSPAPERS)} newspapers are in today's brief")
    for what, fault in CHECKS.items():
        yield Checked(what=what, fault=fault(client, brief))


def _complete_brief(client: CheckClient) -> dict[str, Any] | None:
    """The brief, once it has all expected articles and an edition."""
    brief: dict[str, Any] = client.get("/")
    return brief if brief["edition"] is not None and _events_by_slug(brief).keys() >= EXPECTED.keys() else None


def _events_by_slug(brief: dict[str, Any]) -> dict[str, int]:
    """The event id of each article, by the last part of its URL."""
    return {
        article["url"].rsplit("/", 1)[-1]: event["id"] for event in brief["events"] for article in event["articles"]
    }


def _grouping(client: CheckClient, brief: dict[str, Any]) -> str | None:
    """Each expected event is exactly one event of the brief."""
    found = _events_by_slug(brief)
    pairs = Counter((EXPECTED[slug], found[slug]) for slug in EXPECTED)
    split = sorted({event for event, _ in pairs if sum(1 for other, _ in pairs if other == event) > 1})
    mixed = sorted({event for event, group in pairs if sum(1 for _, other in pairs if other == group) > 1})
    return None if not split and not mixed else f"split into several events: {split}; mixed with others: {mixed}"


def _counts(client: CheckClient, brief: dict[str, Any]) -> str | None:
    wrong = [event["id"] for event in brief["events"] if event["article_count"] != len(event["articles"])]
    return difference(wrong, [])


def _ranking(client: CheckClient, brief: dict[str, Any]) -> str | None:
    first, last = (len(brief["events"][position]["sources"]) for position in (0, -1))
    return None if first > last else f"the first event has {first} sources, the last {last}"


def _sentences(client: CheckClient, brief: dict[str, Any]) -> str | None:
    return difference([event["title"] for event in brief["events"] if not event["summary"].strip()], [])


def _feeds(client: CheckClient, brief: dict[str, Any]) -> str | None:
    found = client.get("/feeds")["feeds"]
    failing = {feed["title"]: feed["error"] for feed in found if feed["error"] or not feed["last_success_at"]}
    return difference((len(found), failing), (len(NEWSPAPERS), {}))


def _edition(client: CheckClient, brief: dict[str, Any]) -> str | None:
    day = brief["edition"]
    first, second = (client.get(f"/editions/{day}.json") for _ in range(2))
    markdown = client.http.get(f"/editions/{day}.md")
    titles = [item["title"] for item in first["items"]]
    missing = [title for title in titles if title not in markdown.text]
    return difference((first == second, bool(titles), missing), (True, True, []))


def _slots(client: CheckClient, brief: dict[str, Any]) -> str | None:
    runs = client.get("/job-runs")["job_runs"]
    twice = [
        slot for slot, times in Counter((run["job_name"], run["scheduled_for"]) for run in runs).items() if times > 1
    ]
    succeeded = {run["job_name"] for run in runs if run["status"] == "success"}
    failed = [run["error_message"] for run in runs if run["status"] in ("failed", "skipped_timeout")]
    missing = {"rss_ingestion", "event_clustering", "publish_brief"} - succeeded
    return difference((twice, missing, failed), ([], set(), []))


def _second_claim(client: CheckClient, brief: dict[str, Any]) -> str | None:
    """Triggering a slot that has already run is refused."""
    run = client.get("/job-runs", job="publish_brief")["job_runs"][0]
    slot = {"job_name": run["job_name"], "scheduled_for": run["scheduled_for"]}
    response = client.http.post("/job-runs", json=slot)
    return difference((response.status_code, response.json().get("code")), (409, "slot_taken"))


def _service(client: CheckClient, brief: dict[str, Any]) -> str | None:
    service = client.get("/service")
    return difference((service["service"], service["schedules"]), ("k2dailybrief-web", False))


CHECKS: dict[str, Callable[[CheckClient, dict[str, Any]], str | None]] = {
    "articles are grouped by event, and events are not mixed": _grouping,
    "each event counts its articles": _counts,
    "events that most newspapers report come first": _ranking,
    "each event has a summary sentence": _sentences,
    "every feed was read without an error": _feeds,
    "the edition is the same each time, in every format": _edition,
    "each slot was claimed once, and no job failed": _slots,
    "triggering a slot that was claimed is refused": _second_claim,
    "the web process schedules nothing": _service,
}
