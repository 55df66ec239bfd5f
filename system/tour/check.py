"""Checks of the tour: the outcome of its first round of runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from apps.shared.checks import CheckClient, Checked, difference

from system.tour import rounds
from system.tour.jobs import MAX_NOTIFICATIONS, chart

Run = dict[str, Any]
Runs = dict[str, list[Run]]
ROUND = "round=1"
DATASET = f"dataset {rounds.QUARTERS[1]} round-1"
VIDEO = [f"{rounds.VIDEO}-{part}.mp4 with {rounds.VIDEO}-{part}.jpg" for part in range(1, rounds.PARTS + 1)]


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait until the first round has ended, then check the outcome of each job."""
    runs = client.until(lambda: _ended(client), "every run of the first round has ended")
    yield Checked(what=f"{sum(map(len, runs.values()))} runs of the first round have ended")
    for what, fault in CHECKS.items():
        yield Checked(what=what, fault=fault(client, runs))


def _search(client: CheckClient, **query: Any) -> list[Run]:
    """The newest hundred runs that match."""
    found: list[Run] = client.get("/api/runs", **query, limit=100)["items"]
    return found


def _ended(client: CheckClient) -> Runs | None:
    """The runs of the first round by job, oldest first; None until all have ended."""
    found = _search(client, tag=ROUND)
    if not found or any(run["state"] in ("queued", "running") for run in found):
        return None
    if not any(run["job"] == "tour.import_customers" for run in found):
        return None  # the last job of a round has not been submitted yet
    by_job: Runs = {}
    for run in reversed(found):
        by_job.setdefault(run["job"], []).append(run)
    return by_job


Checker = Callable[[CheckClient, Runs], str | None]


def _results(runs: Runs, job: str) -> list[Any]:
    return [(run["state"], run["result"]) for run in runs.get(job, [])]


def _progress(client: CheckClient, runs: Runs) -> str | None:
    return difference(_results(runs, "tour.resize_images"), [("succeeded", 12)])


def _key(client: CheckClient, runs: Runs) -> str | None:
    wrong = difference(_results(runs, "tour.index_document"), [("succeeded", version) for version in (1, 2, 3)])
    times = [(run["started_at"], run["finished_at"]) for run in runs["tour.index_document"]]
    overlap = any(finished > started for (_, finished), (started, _) in pairwise(times))
    return wrong or ("two ran at the same time" if overlap else None)


def _retry(client: CheckClient, runs: Runs) -> str | None:
    [run] = runs["tour.send_email"]
    return difference((run["state"], run["result"], run["attempt"]), ("succeeded", "Welcome, Ada!", 2))


def _failure(client: CheckClient, runs: Runs) -> str | None:
    [run] = runs["tour.import_feed"]
    wrong = difference((run["state"], run["failure_type"]), ("failed", "ERROR"))
    return wrong or (None if "is not a feed" in run["error"] else f"its error is {run['error']!r}")


def _stopped(client: CheckClient, runs: Runs) -> str | None:
    states = {job: runs[job][0]["state"] for job in ("tour.crawl_site", "tour.export_orders")}
    return difference(states, {"tour.crawl_site": "timed_out", "tour.export_orders": "cancelled"})


def _build(client: CheckClient, runs: Runs) -> str | None:
    results = [result for _, result in _results(runs, "tour.generate_report")]
    builds = [run for run in _search(client, job="tour.build_dataset") if run["result"] == DATASET]
    datasets = {str(result).partition(" from ")[2] for result in results}
    return difference((len(results), len(builds), datasets), (3, 1, {DATASET}))


def _artifact(client: CheckClient, runs: Runs) -> str | None:
    run = runs["tour.generate_report"][0]
    [artifact] = client.get(f"/api/runs/{run['id']}/artifacts")["items"]
    content = client.http.get(f"/api/runs/{run['id']}/artifacts/report.svg").content
    expected = chart(run["args"]["region"]).encode()
    return difference((content, artifact["sha256"]), (expected, hashlib.sha256(expected).hexdigest()))


def _pipeline(client: CheckClient, runs: Runs) -> str | None:
    [run] = runs["tour.encode_video"]
    wrong = difference((run["state"], run["result"]), ("succeeded", VIDEO))
    segments = [part for part in _search(client, parent=run["id"], parts="true") if part["segment"] == "1"]
    attempts = sorted(part["attempt"] for part in segments)
    return wrong or difference(attempts, [1, 2])


def _children(client: CheckClient, runs: Runs) -> str | None:
    customers = sum(map(len, rounds.CUSTOMERS))
    return difference(_results(runs, "tour.import_customers"), [("succeeded", customers)])


def _bounded(client: CheckClient, runs: Runs) -> str | None:
    expected = [("succeeded", number) for number in range(MAX_NOTIFICATIONS)]
    return difference(_results(runs, "tour.send_notification"), expected)


def _schedule(client: CheckClient, runs: Runs) -> str | None:
    slots = client.until(
        lambda: _search(client, job="tour.refresh_cache", state="succeeded") or None, "a slot of the schedule has run"
    )
    return difference({run["result"] for run in slots}, {"cache refreshed"})


CHECKS: dict[str, Checker] = {
    "a slow run reports its progress and its result": _progress,
    "three runs with the same key run one at a time, in order": _key,
    "a run whose first attempt fails succeeds on the second": _retry,
    "a failed run has its error": _failure,
    "one run times out, and one is cancelled": _stopped,
    "three runs wait for one build, which is done once": _build,
    "a downloaded artifact is the same as the stored one": _artifact,
    "a pipeline retries one of its three segments": _pipeline,
    "a parent run adds up the results of its children": _children,
    f"a queue bounded to {MAX_NOTIFICATIONS} accepts {MAX_NOTIFICATIONS} of {rounds.NOTIFICATIONS} runs": _bounded,
    "a slot of a schedule has run": _schedule,
}
