"""Redaction: secrets are hidden, and long errors are shortened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.support import json_text
from holdfast.support.redaction import MAX_ERROR, Redactor


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password=hunter2", "password=[redacted]"),
        ("PASSWORD: hunter2, next", "PASSWORD: [redacted], next"),
        ('{"api_key": "abc-123"}', '{"api_key": "[redacted]"}'),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ("got bearer abcdefgh123", "got bearer [redacted]"),
        ("postgresql://ada:s3cret@host/db", "postgresql://ada:[redacted]@host/db"),
        ("token=a&secret=b", "token=[redacted]&secret=[redacted]"),
        ("nothing to hide: passwords are good", "nothing to hide: passwords are good"),
        ("the token bucket is empty", "the token bucket is empty"),
    ],
)
def test_secrets_are_hidden_and_other_text_is_unchanged(text: str, hidden: str) -> None:
    assert Redactor().text(text) == hidden


def test_a_rule_without_a_group_hides_the_whole_match() -> None:
    assert Redactor([r"\d{4}-\d{4}"]).text("card 1234-5678.") == "card [redacted]."


@given(st.text())
def test_redacted_text_can_always_be_stored(text: str) -> None:
    assert json_text.storable(Redactor().text(text))


def test_a_long_error_is_shortened_in_the_middle() -> None:
    try:
        raise ValueError("begin " + "x" * 100_000 + " end")
    except ValueError as error:
        text = Redactor().error(error)
    assert len(text) < MAX_ERROR + 200
    assert text.startswith("Traceback")
    assert "characters left out" in text
    assert text.rstrip().endswith(" end")
