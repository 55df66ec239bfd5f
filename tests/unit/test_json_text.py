"""JSON text, instants as text, and digests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.support import json_text
from holdfast.support.errors import NotSerialisable

INSTANTS = st.datetimes(
    min_value=datetime(1971, 1, 1),  # noqa: DTZ001
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=45))),
)


@given(INSTANTS)
def test_an_instant_is_unchanged_after_conversion_to_text(instant: datetime) -> None:
    assert json_text.parse_instant(json_text.instant_text(instant)) == instant


@given(INSTANTS, INSTANTS)
def test_the_texts_of_instants_sort_like_the_instants(one: datetime, other: datetime) -> None:
    assert (json_text.instant_text(one) < json_text.instant_text(other)) == (one < other)
    assert len(json_text.instant_text(one)) == 26


TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(JSON)
def test_a_value_is_unchanged_after_conversion_to_json(value: Any) -> None:
    assert json_text.load(json_text.dump(value, what="it")) == value


def test_values_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(NotSerialisable, match="the argument can't be stored"):
        json_text.dump(object(), what="the argument")
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotSerialisable):
        json_text.dump(loop, what="it")


def test_compact_gives_the_same_text_for_equal_values() -> None:
    assert (
        json_text.compact({"b": 1, "a": [1, "ü"]})
        == json_text.compact({"a": [1, "ü"], "b": 1})
        == '{"a":[1,"ü"],"b":1}'
    )


@given(st.lists(st.none() | st.text()), st.lists(st.none() | st.text()))
def test_a_digest_changes_if_any_part_changes(one: list[str | None], other: list[str | None]) -> None:
    if one != other and not any("\x1f" in (part or "") or part == "\x00" for part in one + other):
        assert json_text.digest(*one) != json_text.digest(*other) or (not one) != (not other)
    assert json_text.digest(*one) == json_text.digest(*one)


@pytest.mark.parametrize(("text", "fine"), [("Zürich 🦊", True), ("", True), ("a\x00", False), ("\ud83d", False)])
def test_text_that_databases_cannot_store_is_recognised(text: str, fine: bool) -> None:
    assert json_text.storable(text) is fine
