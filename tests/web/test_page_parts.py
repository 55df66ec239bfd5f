"""Parts of pages: texts, errors, links, timelines and vendored files."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams
from tests.web.parsed_page import parse

import holdfast.web
from holdfast.support.errors import InvalidArguments
from holdfast.support.text import steers
from holdfast.web import text_filters
from holdfast.web.dashboard import filter_query
from holdfast.web.dashboard.timeline import Bar, Timeline
from holdfast.web.dashboard.tracebacks import chain

WEB = Path(holdfast.web.__file__).parent


@given(st.text(alphabet=st.characters(codec=None), max_size=300), st.integers(0, 200))
def test_any_text_is_shown_without_control_and_formatting_characters(text: str, limit: int) -> None:
    shown = str(text_filters.shown(text, limit))
    page = parse(shown)
    assert {tag for tag, _ in page.elements} <= {"span"}
    assert not [char for char in page.text if steers(char) and char not in "\n\t"]
    assert len(shown) <= 40 * limit + 100
    shown.encode()


def test_control_and_formatting_characters_are_escaped_and_marked() -> None:
    assert text_filters.shown("a\x1b[0m<b>") == 'a<span class="mark">\\x1b</span>[0m&lt;b&gt;'
    assert text_filters.shown("\u202e\u2066x") == '<span class="mark">\\u202e\\u2066</span>x'
    assert text_filters.line("one\ntwo") == 'one<span class="mark">\\n</span>two'
    assert text_filters.shown("two\nlines\tand a tab") == "two\nlines\tand a tab"
    assert text_filters.shown("👩\u200d👧 ünïcode") == "👩\u200d👧 ünïcode"
    assert text_filters.shown("x" * 30, 10) == 'xxxxxxxxxx<span class="mark">… 20 more characters</span>'
    assert text_filters.plain("a\nb\ud800", 10) == "a\\nb\\ud800"


def test_long_json_is_shown_unformatted() -> None:
    assert text_filters.pretty('{"a":1}') == '{\n  "a": 1\n}'
    assert text_filters.pretty({"a": datetime(2026, 1, 1, tzinfo=UTC)}) == '{\n  "a": "2026-01-01 00:00:00+00:00"\n}'
    long = "[" + "1," * 60_000 + "1]"
    assert text_filters.pretty(long) == long


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.18, "180 ms"),
        (1.25, "1.2 s"),
        (48, "48 s"),
        (120, "2 min"),
        (200, "3 min 20 s"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_are_shown_in_ordinary_units(seconds: float, text: str) -> None:
    assert text_filters.duration(seconds) == text
    assert text_filters.duration(timedelta(seconds=seconds)) == text


def test_an_error_is_split_from_the_last_exception_to_the_first() -> None:
    try:
        try:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("second\nof two lines") from error
        except ValueError:
            raise RuntimeError("third")  # noqa: B904 – an implicit chain, without 'from', is tested
    except RuntimeError as error:
        import traceback

        text = "".join(traceback.format_exception(error))
    links = chain(text)
    assert [link.message for link in links] == [
        "RuntimeError: third",
        "ValueError: second\nof two lines",
        "KeyError: 'first'",
    ]
    assert [link.relation for link in links] == [None, "raised while handling", "caused by"]
    assert all(link.traceback.startswith("Traceback") for link in links)


@given(st.text(max_size=400))
def test_any_text_can_be_parsed_as_an_error(text: str) -> None:
    assert chain(text)
    assert chain(f"Traceback (most recent call last):\n{text}")


def test_paging_links_keep_the_filter_of_the_address() -> None:
    first = filter_query.parse(QueryParams("state=failed&job=a+b&arg=x%3D1,y.z%3D2"))
    assert first.filter.args == {"x": "1", "y.z": "2"}
    second = filter_query.parse(QueryParams(first.older("cursor-2")))
    third = filter_query.parse(QueryParams(second.older("cursor-3")))
    assert (third.after, third.trail) == ("cursor-3", ("", "cursor-2"))
    assert filter_query.parse(QueryParams(third.newer)) == second
    assert filter_query.parse(QueryParams(second.newer)) == first
    assert filter_query.parse(QueryParams(third.query(state="queued"))).words == {
        "state": "queued",
        "job": "a b",
        "arg": "x=1,y.z=2",
    }


@pytest.mark.parametrize(
    "query", ["since=0001-01-01T00:00%2B14:00", "until=soon", "arg=%3D1", "tag=x", "error=" + "x" * 1001]
)
def test_invalid_filter_values_are_refused(query: str) -> None:
    with pytest.raises(InvalidArguments):
        filter_query.parse(QueryParams(query)).filter  # noqa: B018


def test_a_timeline_without_duration_can_be_drawn() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    line = Timeline(start=at, end=at, rows=(), left=0)
    assert line.share(at) == 0
    assert line.width(Bar(look="step", start=at, end=at)) > 0
    line = Timeline(start=at, end=at + timedelta(seconds=10), rows=(), left=0)
    assert (line.share(at + timedelta(seconds=5)), line.share(at + timedelta(hours=1))) == (50, 100)


def test_the_vendored_files_are_unchanged() -> None:
    folder = WEB / "static" / "vendor"
    documented = dict(re.findall(r"\| `([^`]+)` .*\| ([0-9a-f]{64}) \|", (folder / "README.md").read_text()))
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.suffix != ".md"
    }
    assert found == documented


def test_no_template_has_inline_script_or_style() -> None:
    for path in sorted((WEB / "templates").glob("*.html")):
        text = re.sub(r"\{#.*?#\}", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(
            r"<style|<script(?![^>]*\bsrc=)|\bstyle=|\bon[a-z]+=|\bhx-on|\|\s*safe\b|javascript:", text
        ), path.name
