"""Policies: defaults, and how they are stored."""

from __future__ import annotations

from datetime import timedelta

from holdfast.support import json_text
from holdfast.values.policies import Policy, policy_from_json
from holdfast.values.retries import Retry


def test_a_policy_comes_back_unchanged_from_json() -> None:
    policy = Policy(
        max_attempts=7,
        timeout=timedelta(seconds=1.5),
        on_timeout="retry",
        on_crash="fail",
        max_takeovers=0,
        key_order="strict",
        retry=Retry(step_attempts=3, delay=timedelta(seconds=0.25), factor=1.5, max_delay=timedelta(hours=1), jitter=0),
    )
    assert policy_from_json(policy.to_json()) == policy
    assert policy_from_json(Policy(timeout=None).to_json()).timeout is None
    assert set(json_text.load(Policy().to_json())) == set(Policy.__dataclass_fields__)


def test_the_error_classes_of_a_retry_are_not_stored() -> None:
    assert policy_from_json(Policy(retry=Retry(on=(KeyError,))).to_json()).retry.on == (Exception,)


def test_the_default_policy_is_the_documented_one() -> None:
    policy = Policy()
    assert (policy.timeout, policy.max_attempts, policy.retry.step_attempts) == (timedelta(seconds=120), 1, 2)
    assert (policy.on_crash, policy.on_timeout, policy.key_order) == ("requeue", "end", "due")
