"""Messages between a worker and an isolated run: values are equal after sending."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.runs.claim import ClaimedRun
from holdfast.runs.lease import Lease
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.submission import Submission
from holdfast.values.artifacts import Artifact
from holdfast.values.builds import BuildRequest
from holdfast.values.policies import Policy
from holdfast.values.retries import Retry
from holdfast.values.runs import Result, Step
from holdfast.worker.isolation import messages
from holdfast.worker.isolation.supervisor import Lines, line

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
POLICY = Policy(max_attempts=3, timeout=None, retry=Retry(delay=timedelta(seconds=5)))
REQUEST = BuildRequest(job="b", scope="s", fingerprint="f", queue="q", priority=1, args="{}", policy=POLICY, tags="{}")
SUBMITTED: dict[str, Any] = {"job": "j", "queue": "q", "priority": 1, "key": None, "args": "{}", "policy": POLICY}


def sent(message: messages.Message) -> messages.Message:
    [received] = Lines().feed(line(message))
    return received


def test_a_claim_is_equal_after_sending() -> None:
    entry = QueueEntry(run_id="r", job="j", queue="q", rank=-1, key="lone \ud800", claim=2, rate_turn=3)
    lease = Lease(entry=entry, holder="w", started_at=NOW, expires_at=NOW, deadline_at=None, permit=4)
    claim = ClaimedRun(lease=lease, args='{"a":1}', policy=POLICY, tags="{}", again_of="x", created_at=NOW, stage="s")
    back = messages.claim_from_wire(sent(messages.claim_to_wire(claim)))
    assert back == claim
    assert back.created_at.tzinfo is UTC


def test_a_submission_with_builds_and_family_is_equal_after_sending() -> None:
    member = Submission(run_id="m", **SUBMITTED)
    submission = Submission(
        run_id="r",
        due_at=NOW,
        dependencies={"a": 1},
        build_requests={REQUEST: 0},
        depends_on=("a", REQUEST),
        build=REQUEST,
        family=(member,),
        **SUBMITTED,
    )
    back = messages.submission_from_wire(sent(messages.submission_to_wire(submission)))
    assert back == submission
    [request] = back.build_requests
    assert (request.queue, request.policy) == (REQUEST.queue, REQUEST.policy)


def test_steps_artifacts_and_results_are_equal_after_sending() -> None:
    values: list[Any] = [
        Step(name="s", result="1", claim=1, attempts=2, started_at=NOW, finished_at=NOW, number=3),
        Artifact(run_id="r", folder="p", name="n", claim=1, size=2, sha256="0" * 64, created_at=NOW),
        Result(run_id="r", job=None, state="failed", failure_type="ERROR", error="why", result=None),
    ]
    assert [messages.from_wire(type(value), sent(messages.to_wire(value))) for value in values] == values
