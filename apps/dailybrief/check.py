"""Checks of the daily brief: that the samples were read, grouped and published, each slot once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from apps.dailybrief.samples.stories import PAPERS, SAMPLES
from apps.shared.checks import CheckClient, Checked, difference

FIRST = {sample.slug: sample.event for sample in SAMPLES if sample.at <= 1}
"""What has been published before anyone looks, and which event it reports."""


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait for the first brief and its edition, then look at them piece by piece."""
    brief = client.until(
        lambda: _whole(client), "every article of the samples is in today's brief, and it is published"
    )
    yield Checked(what=f"{len(brief['events'])} events of {len(PAPERS)} newspapers are in today's brief")
    for what, fault in CHECKS.items():
        yield Checked(what=what, fault=fault(client, brief))


def _whole(client: CheckClient) -> dict[str, Any] | None:
    """The brief, once all that has been published is in it and its edition is there."""
    brief: dict[str, Any] = client.get("/")
    return brief if brief["edition"] is not None and _grouped(brief).keys() >= FIRST.keys() else None


def _grouped(brief: dict[str, Any]) -> dict[str, int]:
    """The event that each article is in, by the last part of its address."""
    return {
        article["url"].rsplit("/", 1)[-1]: event["id"] for event in brief["events"] for article in event["articles"]
    }


def _together(client: CheckClient, brief: dict[str, Any]) -> str | None:
    """As many groups as events, and none of them in two."""
    placed = _grouped(brief)
    pairs = Counter((FIRST[slug], placed[slug]) for slug in FIRST)
    split = sorted({event for event, _ in pairs if sum(1 for other, _ in pairs if other == event) > 1})
    mixed = sorted({event for event, group in pairs if sum(1 for _, other in pairs if other == group) > 1})
    return None if not split and not mixed else f"in several groups: {split}; together with others: {mixed}"


def _counts(client: CheckClient, brief: dict[str, Any]) -> str | None:
    wrong = [event["id"] for event in brief["events"] if event["article_count"] != len(event["articles"])]
    return difference(wrong, [])


def _ranked(client: CheckClient, brief: dict[str, Any]) -> str | None:
    first, last = (len(brief["events"][place]["sources"]) for place in (0, -1))
    return None if first > last else f"the first event has {first} sources, the last {last}"


def _sentences(client: CheckClient, brief: dict[str, Any]) -> str | None:
    return difference([event["title"] for event in brief["events"] if not event["summary"].strip()], [])


def _feeds(client: CheckClient, brief: dict[str, Any]) -> str | None:
    found = client.get("/feeds")["feeds"]
    failing = {feed["title"]: feed["error"] for feed in found if feed["error"] or not feed["last_success_at"]}
    return difference((len(found), failing), (len(PAPERS), {}))


def _edition(client: CheckClient, brief: dict[str, Any]) -> str | None:
    day = brief["edition"]
    first, again = (client.get(f"/editions/{day}.json") for _ in range(2))
    markdown = client.http.get(f"/editions/{day}.md")
    titles = [item["title"] for item in first["items"]]
    missing = [title for title in titles if title not in markdown.text]
    return difference((first == again, bool(titles), missing), (True, True, []))


def _slots(client: CheckClient, brief: dict[str, Any]) -> str | None:
    runs = client.get("/job-runs")["job_runs"]
    twice = [
        slot for slot, times in Counter((run["job_name"], run["scheduled_for"]) for run in runs).items() if times > 1
    ]
    done = {run["job_name"] for run in runs if run["status"] == "success"}
    failed = [run["error_message"] for run in runs if run["status"] in ("failed", "skipped_timeout")]
    missing = {"rss_ingestion", "event_clustering", "publish_brief"} - done
    return difference((twice, missing, failed), ([], set(), []))


def _taken(client: CheckClient, brief: dict[str, Any]) -> str | None:
    """A slot that has been can't be had again, by no hand."""
    run = client.get("/job-runs", job="publish_brief")["job_runs"][0]
    slot = {"job_name": run["job_name"], "scheduled_for": run["scheduled_for"]}
    response = client.http.post("/job-runs", json=slot)
    return difference((response.status_code, response.json().get("code")), (409, "slot_taken"))


def _service(client: CheckClient, brief: dict[str, Any]) -> str | None:
    service = client.get("/service")
    return difference((service["service"], service["schedules"]), ("k2dailybrief-web", False))


CHECKS: dict[str, Callable[[CheckClient, dict[str, Any]], str | None]] = {
    "articles of one event are together, and of different events apart": _together,
    "each event counts its articles": _counts,
    "what most newspapers report comes first": _ranked,
    "each event has its sentence": _sentences,
    "every feed was read without an error": _feeds,
    "the edition is the same each time, in every form": _edition,
    "each slot was claimed once, and no job has failed": _slots,
    "a slot that is taken is refused": _taken,
    "the web process schedules nothing": _service,
}
