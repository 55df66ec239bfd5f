"""Canonical URLs: equivalent URLs get the same form, and nothing else is changed."""

from __future__ import annotations

import pytest
from apps.dailybrief.feeds import feed_address
from apps.dailybrief.feeds.check_url import BadAddress
from apps.dailybrief.feeds.limits import Limits
from apps.dailybrief.feeds.urls import LONGEST, BadUrl, canonical
from hypothesis import example, given, settings
from hypothesis import strategies as some


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("HTTP://News.Example/A", "http://news.example/A"),
        ("https://news.example", "https://news.example/"),
        ("https://news.example./a", "https://news.example/a"),
        ("http://news.example:80/a", "http://news.example/a"),
        ("https://news.example:443/a", "https://news.example/a"),
        ("https://news.example:80/a", "https://news.example:80/a"),
        ("https://news.example/a#comments", "https://news.example/a"),
        ("https://news.example/#!/news/1", "https://news.example/#!/news/1"),
        ("https://news.example/a?utm_source=x&UTM_Medium=y&fbclid=z", "https://news.example/a"),
        ("https://news.example/a?id=7&utm_source=rss", "https://news.example/a?id=7"),
        ("https://news.example/a?b=2&a=1", "https://news.example/a?a=1&b=2"),
        ("https://news.example/a?x=2&x=1&a=0", "https://news.example/a?a=0&x=2&x=1"),
        ("https://news.example/a?z;a", "https://news.example/a?z;a"),
        ("https://news.example/a?z=1&12345", "https://news.example/a?z=1&12345"),
        ("https://news.example/a?", "https://news.example/a"),
        ("https://news.example/a/../b/./c", "https://news.example/b/c"),
        ("https://news.example/../../etc", "https://news.example/etc"),
        ("https://news.example/a//b/", "https://news.example/a//b/"),
        ("https://news.example/%7euser/%c3%a9", "https://news.example/~user/%C3%A9"),
        ("https://news.example/é?q=ü x", "https://news.example/%C3%A9?q=%C3%BC%20x"),
        ("https://news.example/a%2Fb%26?c=%26%3d", "https://news.example/a%2Fb%26?c=%26%3D"),
        ("https://news.example/100%", "https://news.example/100%25"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
        ("https://XN--BCHER-KVA.example/a", "https://xn--bcher-kva.example/a"),
        ("https://[2001:DB8:0::1]:8443/", "https://[2001:db8::1]:8443/"),
        ("  https://news.example/\n\ta ", "https://news.example/a"),
        ("/a", "https://base.example/a"),
        ("//other.example/a", "https://other.example/a"),
        ("?page=2", "https://base.example/feed/?page=2"),
    ],
)
def test_a_url_has_one_canonical_form(raw: str, expected: str) -> None:
    assert canonical(raw, base="https://base.example/feed/") == expected


@pytest.mark.parametrize(
    "raw",
    [
        "javascript:alert(1)",
        "ftp://news.example/a",
        "file:///etc/passwd",
        "mailto:a@news.example",
        "https://",
        "https://user:secret@news.example/",
        "https://news.example:port/",
        "https://news.example:99999/",
        "https://new s.example/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://a..example/",
        "https://-.example/",
        "urn:uuid:4f2b",
        "no address",
        "",
        "https://news.example/" + "a" * LONGEST,
    ],
)
def test_a_text_that_is_not_a_web_url_is_refused(raw: str) -> None:
    with pytest.raises(BadUrl):
        canonical(raw)


HOSTS = some.sampled_from(["News.Example", "bücher.example.", "faß.example", "127.0.0.1", "[::1]", "例え.テスト"])
TEXT = some.text(max_size=30)
RAW_URLS = some.one_of(
    some.text(max_size=60),
    some.builds(
        "{}://{}{}/{}{}{}".format,
        some.sampled_from(["http", "HTTPS"]),
        HOSTS,
        some.sampled_from(["", ":80", ":443", ":8080"]),
        TEXT,
        some.one_of(some.just(""), some.builds("?{}={}&utm_source=x&{}".format, TEXT, TEXT, TEXT)),
        some.one_of(some.just(""), some.builds("#{}".format, TEXT), some.builds("#!{}".format, TEXT)),
    ),
)


@settings(max_examples=120, deadline=None)
@given(RAW_URLS)
@example("http://h.example/%2e%2E/a%2")
@example("http://h.example/?&&=&a&%75tm_source=1")
@example("http://h.example/?a=%%37%35")
def test_a_canonical_url_is_ascii_and_its_own_canonical_form(raw: str) -> None:
    try:
        found = canonical(raw)
    except BadUrl:
        return
    assert canonical(found) == found
    assert found.isascii()
    assert not set(found) & set(' <>"`{}|\\^\n')
    assert "utm_source" not in found.partition("#")[0].partition("?")[2]


def test_the_url_of_a_feed_keeps_its_query() -> None:
    raw = " HTTPS://Bücher.example./feed?b=1&utm_source=2&a=3#top "
    assert feed_address(raw, Limits()) == "https://xn--bcher-kva.example/feed?b=1&utm_source=2&a=3"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("ftp://news.example/feed", "bad_scheme"),
        ("news.example/feed", "bad_scheme"),
        ("https://me:secret@news.example/feed", "credentials_in_url"),
        ("https://news.example:25/feed", "forbidden_port"),
        ("http://127.0.0.1/feed", "forbidden_address"),
        ("http://[::1]/feed", "forbidden_address"),
        ("https:///feed", "bad_url"),
        ("https://news.example/" + "a" * LONGEST, "bad_url"),
        ("https://exa mple/feed", "bad_url"),
    ],
)
def test_a_feed_with_an_invalid_or_forbidden_url_is_refused(raw: str, code: str) -> None:
    with pytest.raises(BadAddress) as refused:
        feed_address(raw, Limits())
    assert refused.value.code == code
