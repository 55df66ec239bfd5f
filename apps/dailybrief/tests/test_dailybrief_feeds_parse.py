"""Parsing: every format, even broken or mislabelled, becomes articles that are safe to store and show."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from apps.dailybrief.feeds.decoding import decode
from apps.dailybrief.feeds.html import plain, sanitise
from apps.dailybrief.feeds.parse import Article, BadFeed, Parsed, parse
from apps.dailybrief.feeds.parser_processes import ParserPool
from apps.dailybrief.tests.feed_server import ENCODINGS, rss
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.process.support import gone, wait_for

URL = "https://news.example/feeds/all.xml"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def read(document: str | bytes, *, content_type: str = "", at_most: int = 100, url: str = URL) -> Parsed:
    body = document if isinstance(document, bytes) else document.encode()
    return parse(body, url=url, content_type=content_type, at=NOW, at_most=at_most)


def items(*inner: str) -> str:
    listed = "".join(f"<item>{item}</item>" for item in inner)
    return f"<rss version='2.0'><channel><title>News</title>{listed}</channel></rss>"


def only(*inner: str) -> Article:
    [article] = read(items(*inner)).articles
    return article


RSS_090 = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns="http://my.netscape.com/rdf/simple/0.9/"><channel><title>News</title><link>https://news.example/</link></channel>
    <item><title>Ferry back</title><link>https://news.example/ferry</link></item></rdf:RDF>"""
RSS_091 = """<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"
    "http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel><title>News</title>
    <link>https://news.example/</link><item><title>Ferry back</title><link>https://news.example/ferry</link></item>
    </channel></rss>"""
RSS_10 = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://news.example/">
    <title>News</title><link>https://news.example/</link></channel><item rdf:about="https://news.example/ferry">
    <title>Ferry back</title><link>https://news.example/ferry</link><dc:date>2026-02-28T10:00:00Z</dc:date>
    <dc:creator>Ada</dc:creator></item></rdf:RDF>"""
RSS_20 = """<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title>
    <link>https://news.example/</link><item><title>Ferry back</title><link>https://news.example/ferry</link>
    <author>ada@news.example (Ada)</author><pubDate>Sat, 28 Feb 2026 11:00:00 +0100</pubDate>
    <content:encoded><![CDATA[<p>It sails.</p>]]></content:encoded></item></channel></rss>"""
ATOM_03 = """<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>News</title><link rel="alternate"
    href="https://news.example/" type="text/html"/><entry><title>Ferry back</title><link rel="alternate"
    href="https://news.example/ferry" type="text/html"/><id>tag:1</id><issued>2026-02-28T10:00:00Z</issued>
    <author><name>Ada</name></author></entry></feed>"""
ATOM_10 = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://news.example/">
    <title type="html">&lt;b&gt;News&lt;/b&gt;</title><link href="."/><entry>
    <title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Ferry <em>back</em></div></title>
    <link href="ferry"/><id>tag:1</id><published>2026-02-28T10:00:00Z</published>
    <updated>2026-03-01T00:00:00Z</updated><author><name>Ada</name></author>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>It sails.</p></div></content></entry></feed>"""
JSON_11 = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "News",
        "home_page_url": "https://news.example/",
        "items": [
            {
                "id": 7,
                "url": "/ferry",
                "title": "Ferry back",
                "content_html": "<p>It sails.</p>",
                "date_published": "2026-02-28T11:00:00+01:00",
                "authors": [{"name": "Ada"}],
            },
            "no item",
        ],
    }
)


@pytest.mark.contract("J16")
@pytest.mark.parametrize(
    ("document", "dated"),
    [(RSS_090, 0), (RSS_091, 0), (RSS_10, 1), (RSS_20, 1), (ATOM_03, 1), (ATOM_10, 1), (JSON_11, 1)],
    ids=["rss 0.90", "rss 0.91", "rss 1.0", "rss 2.0", "atom 0.3", "atom 1.0", "json 1.1"],
)
def test_every_format_gives_the_same_article(document: str, dated: int) -> None:
    parsed = read(document)
    assert (parsed.title, parsed.site_url, parsed.unusable) == ("News", "https://news.example/", 0)
    [article] = parsed.articles
    assert (article.url, article.title, article.source) == ("https://news.example/ferry", "Ferry back", "News")
    if dated:
        assert article.published_at == datetime(2026, 2, 28, 10, tzinfo=UTC)
        assert article.author is not None
        assert "Ada" in article.author
    if "It sails" in document:
        assert article.content_html.removeprefix("<div>") == "<p>It sails.</p>"
        assert article.summary == "It sails."


@pytest.mark.parametrize(("real", "declared", "header"), ENCODINGS)
def test_a_wrongly_declared_encoding_does_not_garble_the_text(real: str, declared: str, header: str) -> None:
    document = f'<?xml version="1.0" encoding="{declared}"?>' + rss("encoded", 1)
    parsed = read(document.encode(real), content_type=f"text/xml; charset={header}" if header else "")
    assert {article.summary[:10] for article in parsed.articles} == {"Naïve café"}


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("Ночь", "koi8-r"), ("夜の海", "shift_jis"), ("夜の海", "iso-2022-jp"), ("夜海", "gb2312"), ("밤", "euc-kr")],
)
def test_a_correctly_declared_encoding_is_used(text: str, encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'.encode()
    assert decode(head + text.encode(encoding)) == text
    assert decode(text.encode(encoding), content_type=f"text/xml; charset={encoding}") == text


@settings(max_examples=200, deadline=None)
@given(
    some.binary(max_size=200), some.sampled_from(["", "charset=utf-16", "charset=zip", "charset=idna", "charset=hz"])
)
def test_any_bytes_are_decoded_to_text_that_a_database_accepts(body: bytes, content_type: str) -> None:
    text = decode(body, content_type=content_type)
    assert "\x00" not in text
    text.encode()  # fails on lone surrogates


def test_relative_links_are_resolved_against_the_feed() -> None:
    assert only("<title>A</title><link>../a?utm_source=x</link>").url == "https://news.example/a"
    atom = read(ATOM_10, url="https://elsewhere.example/x")
    assert atom.articles[0].url == "https://news.example/ferry"  # unless it has an xml:base
    nested = "<feed xml:base='/a/'><entry xml:base='b/'><title>A</title><link href='c'/></entry></feed>"
    assert read(nested).articles[0].url == "https://news.example/a/b/c"
    text = only("<title>A</title><description>&lt;a href='b'&gt;b&lt;/a&gt;</description>").content_html
    assert 'href="https://news.example/feeds/b"' in text


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("<guid>https://news.example/g</guid>", "https://news.example/g"),
        ("<guid isPermaLink='false'>https://news.example/g</guid>", "https://news.example/g"),
        ("<link>javascript:alert(1)</link><guid>https://news.example/g</guid>", "https://news.example/g"),
        ("<enclosure url='https://news.example/a.mp3' type='audio/mpeg' length='1'/>", "https://news.example/a.mp3"),
    ],
)
def test_an_article_without_a_link_gets_the_next_best_url(entry: str, url: str) -> None:
    assert only(f"<title>A</title>{entry}").url == url


PAGE = "<link rel='alternate' href='https://news.example/page'/>"
API = "<link rel='self' href='https://news.example/api/7'/>"
SOUND = "<link rel='enclosure' href='https://news.example/a.mp3' type='audio/mpeg'/>"


@pytest.mark.parametrize("id_", ["<id>tag:7</id>", "<id>https://news.example/id/7</id>", ""])
@pytest.mark.parametrize(
    "links", [PAGE + API + SOUND, API + SOUND + PAGE, SOUND + PAGE + API, API + PAGE.replace(" rel='alternate'", "")]
)
def test_the_url_of_an_atom_entry_is_its_alternate_link_in_any_order(id_: str, links: str) -> None:
    for entry in (id_ + links, links + id_):
        feed = f"<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>A</title>{entry}</entry></feed>"
        assert read(feed).articles[0].url == "https://news.example/page"


def test_an_atom_entry_without_an_alternate_link_uses_its_id_then_other_links() -> None:
    def url(entry: str) -> str:
        [article] = read(
            f"<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>A</title>{entry}</entry></feed>"
        ).articles
        return article.url

    assert url(f"{SOUND}{API}<id>https://news.example/id/7</id>") == "https://news.example/id/7"
    assert url(f"{SOUND}{API}<id>tag:7</id>") == "https://news.example/api/7"
    assert url(f"{SOUND}<id>tag:7</id>") == "https://news.example/a.mp3"


def test_the_url_of_an_rss_item_is_its_link_even_if_an_audio_file_comes_first() -> None:
    sound = "<enclosure url='https://news.example/a.mp3' type='audio/mpeg' length='1'/>"
    assert only(f"<title>A</title>{sound}<guid>x</guid><link>/a</link>").url == "https://news.example/a"


PROLOGS = [
    "<!-- made by <b>us</b> -->",
    "<!-- 1 < 2 --><?xml-stylesheet href='<x>'?>\n<!-- <item><title>Not one</title><link>/x</link></item> -->",
    "<?xml version='1.0'?><!-- <rss> --><!DOCTYPE rss SYSTEM 'a>b' [<!-- ]> <item> --><!ENTITY a '<item>]>'>]><!-- -->",
    "<!doctype rss><!-- <rss><channel><item><title>Not one</title></item></channel></rss> -->",
    "Warning: <!-- <item><title>Not one</title></item> --> on line 3",
]


@pytest.mark.parametrize("prolog", PROLOGS)
def test_markup_before_the_root_element_is_skipped(prolog: str) -> None:
    for feed in (items("<title>A</title><link>/a</link>"), RSS_20.replace("Ferry back", "A").replace("ferry", "a")):
        [article] = read(prolog + feed).articles
        assert (article.title, article.url) == ("A", "https://news.example/a")
    assert read(prolog + items()).articles == ()


def test_an_item_in_a_comment_is_ignored() -> None:
    hidden = "<!-- <item><title>Not one</title><link>/x</link></item> -->"
    feed = items("<title>A</title><link>/a</link>").replace("<item>", f"{hidden}<item>")
    assert [article.title for article in read(hidden + feed).articles] == ["A"]


@pytest.mark.parametrize("unclosed", ["<!--", "<!DOCTYPE rss [<!ENTITY a 'b", "<!DOCTYPE rss ['", "<?xml"])
def test_an_unclosed_prolog_is_parsed_in_bounded_time(unclosed: str) -> None:
    began = time.monotonic()
    with suppress(BadFeed):
        read((unclosed + "<!-- x --><?y?>" * 10) * 2000)
    with suppress(BadFeed):
        read(unclosed * 50_000)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "<guid isPermaLink='false'>17</guid>",
        "<guid>17</guid>",  # a URL by the standard, but not in practice
        "<guid>urn:x:17</guid>",
        "<link>mailto:a@b.example</link>",
    ],
)
def test_an_article_without_a_url_gets_a_stable_one(entry: str) -> None:
    first, second = only(f"<title>A</title>{entry}"), only(f"<title>A</title>{entry}")
    other = only(f"<title>B</title>{entry.replace('17', '18')}")
    assert first.url == second.url != other.url
    assert first.url.startswith(f"{URL}#")


def test_a_generated_url_does_not_depend_on_redirects_of_the_feed() -> None:
    entry = b"<item><title>A</title><guid isPermaLink='false'>17</guid></item>"
    body = b"<rss version='2.0'><channel>" + entry + b"</channel></rss>"
    parse_from = partial(parse, body, content_type="text/xml", at=NOW, at_most=9, feed="https://news.example/feed")
    first, second = (parse_from(url=f"https://{host}.test/mirror").articles[0].url for host in "ab")
    assert first == second
    assert first.startswith("https://news.example/feed#")


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("<pubDate>Sat, 28 Feb 2026 10:00:00 GMT</pubDate>", datetime(2026, 2, 28, 10, tzinfo=UTC)),
        ("<pubDate>Sat, 28 Feb 2026 10:00:00 -0500</pubDate>", datetime(2026, 2, 28, 15, tzinfo=UTC)),
        ("", NOW),
        ("<pubDate>yesterday</pubDate>", NOW),
        ("<pubDate>Thu, 01 Jan 1970 00:00:00 GMT</pubDate>", NOW),
        ("<pubDate>Sun, 01 Mar 2099 00:00:00 GMT</pubDate>", NOW),
        ("<pubDate>9999999999999</pubDate>", NOW),
        ("<pubDate>0000-00-00T00:00:00Z</pubDate>", NOW),
    ],
)
def test_a_date_is_used_if_it_is_plausible_and_not_in_the_future(date: str, expected: datetime) -> None:
    assert only(f"<title>A</title><link>/a</link>{date}").published_at == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("Salt &amp; pepper", "Salt & pepper"),
        ("Salt &amp;amp; pepper", "Salt & pepper"),
        ("&lt;b&gt;Bold&lt;/b&gt; news", "Bold news"),
        ("<![CDATA[<i>Slanted</i> news]]>", "Slanted news"),
        ("2 &lt; 3 &amp; 4 > 3", "2 < 3 & 4 > 3"),
        ("x\n\n  y", "x y"),
        ("&lt;script&gt;alert(1)&lt;/script&gt;Calm", "Calm"),
    ],
)
def test_a_title_is_plain_text(raw: str, expected: str) -> None:
    assert only(f"<title>{raw}</title><link>/a</link>").title == expected


def test_an_entry_without_a_title_gets_its_first_words_and_an_empty_one_is_left_out() -> None:
    parsed = read(
        items("<description>Only words here</description>", "<link>/empty</link>", "<title>&lt;p/&gt;</title>")
    )
    assert [article.title for article in parsed.articles] == ["Only words here"]
    assert parsed.unusable == 2


def test_the_source_element_names_the_source_of_a_republished_article() -> None:
    assert only("<title>A</title><link>/a</link><source url='https://wire.example/'>Wire</source>").source == "Wire"


def test_the_newest_articles_are_kept_without_duplicates() -> None:
    entries = [f"<title>{n}</title><link>/{n}</link><pubDate>{n:02} Jan 2026 00:00 GMT</pubDate>" for n in range(1, 10)]
    parsed = read(items(*entries, entries[-1].replace("/9", "/9?utm_campaign=again")), at_most=3)
    assert [article.title for article in parsed.articles] == ["9", "8", "7"]
    assert parsed.unusable == 1


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("", "not_a_feed"),
        (" \n ", "not_a_feed"),
        ("<!doctype html><html><body><p>A page</body></html>", "not_a_feed"),
        ("plain words", "not_a_feed"),
        ("{}", "not_a_feed"),
        ("{", "unreadable"),
        ("{" + '"a":[' * 100_000, "unreadable"),
        ("<rss version='2.0'><channel><title>cut", "unreadable"),
        ("<rss version='2.0'><channel><title>cut&nbsp;off</title>", "unreadable"),
        ("<!-- <rss version='2.0'></rss> --><html><body>A page</body></html>", "not_a_feed"),
        (bytes(range(256)) * 10, "not_a_feed"),
    ],
)
def test_a_document_that_is_not_a_feed_is_refused(document: str | bytes, code: str) -> None:
    with pytest.raises(BadFeed) as refused:
        read(document)
    assert refused.value.code == code


def test_a_feed_without_articles_is_valid() -> None:
    assert read(items()).articles == ()
    for title in ("Cafe&nbsp;news", "Caf&eacute; &amp; bar", "Salt & pepper"):
        rss = f"<rss version='2.0'><channel><title>{title}</title></channel></rss>"
        atom = f"<feed xmlns='http://www.w3.org/2005/Atom'><title>{title}</title></feed>"
        for feed in (rss, atom):
            assert read(feed).articles == ()
            assert read(feed).title[:3] == title[:3]


def test_the_readable_part_of_a_broken_feed_is_kept() -> None:
    document = items("<title>A & B</title><link>/a</link>", "<title>C\x0b</title><link>/c</link>")
    parsed = read(document.removesuffix("</channel></rss>"))
    assert [article.title for article in parsed.articles] == ["A & B", "C"]


def test_entities_are_not_expanded_and_files_are_not_read() -> None:
    lines = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 12))
    for head in (
        f"<!DOCTYPE rss [<!ENTITY l0 'ha'>{lines}]>",
        "<!DOCTYPE rss [<!ENTITY l11 SYSTEM 'file:///etc/passwd'>]>",
        "<!DOCTYPE rss SYSTEM 'http://127.0.0.1:9/x.dtd' [<!ENTITY % all SYSTEM 'http://127.0.0.1:9/y'> %all;]>",
        "<!DOCTYPE rss [<!ENTITY l11 'haha'>]>",
        "<!DOCTYPE rss [<!<!ENTITY a ''>ENTITY l11 'haha'>]>",
        "<!DOCTYPE rss [<!ENTITY a '<b>'><!ENTITY l11 'haha'>]>",
    ):
        parsed = read(head + items("<title>A&l11;&l11;</title><link>/a</link><description>&l11;</description>"))
        text = "".join(article.title + article.summary + article.content_html for article in parsed.articles)
        assert "l11" in text
        assert "haha" not in text
        assert "root:" not in text


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='JaVa&#10;Script:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<iframe src='https://evil.example'></iframe>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "<p style='background:url(javascript:alert(1))' onclick='alert(1)' class='frame'>x</p>",
    "<form action='https://evil.example'><input name=password></form>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'><base href='https://evil.example'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<textarea><img src=x onerror=alert(1)></textarea>",
    "<object data='x'></object><embed src='x'><link rel=stylesheet href='https://evil.example'>",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_scripts_styles_and_external_resources_are_removed(attack: str) -> None:
    escaped = attack.replace("&", "&amp;").replace("<", "&lt;")
    article = only(f"<title>{escaped} t</title><link>/a</link><description>{escaped}</description>")
    for text in (article.content_html, sanitise(article.content_html, base=URL)):
        for word in ("<script", "<img", "<iframe", "<svg", "<form", "<meta", "<base", "<style", "<object", "<link"):
            assert word not in text.lower()
        for word in ("onerror=", "onclick=", "style=", "class=", 'href="javascript', 'href="data'):
            assert word not in text.lower()
    assert "<" not in article.title


def test_links_are_kept_with_safe_rel_attributes() -> None:
    text = sanitise("<p>See <a href='/x' target=_self>here</a> and <em>there</em>.", base="https://news.example/a/b")
    link = '<a href="https://news.example/x" rel="noopener noreferrer nofollow">here</a>'
    assert text == f"<p>See {link} and <em>there</em>.</p>"


@settings(max_examples=200, deadline=None)
@given(some.text(max_size=200))
def test_plain_text_is_one_short_line_without_control_characters(text: str) -> None:
    found = plain(text, at_most=50)
    assert len(found) <= 50
    assert found == found.strip()
    assert "\n" not in found
    assert "\x00" not in found


@settings(max_examples=60, deadline=None)
@given(some.text(alphabet="<>/&;'\"= abrsitemlnkoc!-[]?#\x00\ud800", max_size=120))
def test_any_input_is_parsed_or_refused(rubbish: str) -> None:
    document = items(f"<title>{rubbish}</title><link>/a</link>").encode("utf-8", "surrogatepass")
    try:
        parsed = read(document)
    except BadFeed:
        return
    for article in parsed.articles:
        f"{article.title}{article.summary}{article.content_html}{article.guid}{article.url}".encode()
        assert "\x00" not in article.title + article.summary + article.content_html + (article.guid or "")


@pytest.fixture(scope="module")
def parsers() -> Iterator[ParserPool]:
    found = ParserPool(1, seconds=0.7)
    yield found
    found.close()


def parse_in_pool(parsers: ParserPool, body: bytes) -> Parsed:
    return parsers.parse(body, url=URL, content_type="", at=NOW, at_most=10)


def test_a_parser_process_gives_the_same_result(parsers: ParserPool) -> None:
    assert parse_in_pool(parsers, RSS_20.encode()) == read(RSS_20, at_most=10)
    with pytest.raises(BadFeed) as refused:
        parse_in_pool(parsers, b"words")
    assert refused.value.code == "not_a_feed"


def test_a_document_that_takes_too_long_is_refused_and_the_next_one_is_parsed(
    parsers: ParserPool,
) -> None:
    began = time.monotonic()
    with pytest.raises(BadFeed) as refused:
        parse_in_pool(parsers, b"<rss version='2.0'><channel>" + b"<a>" * 300_000)
    assert refused.value.code == "too_complex"
    assert timedelta(seconds=time.monotonic() - began) < timedelta(seconds=50)
    assert parse_in_pool(parsers, RSS_20.encode()).articles


def test_a_parser_process_ends_when_its_parent_is_killed() -> None:
    program = f"""
import signal
from apps.dailybrief.feeds.parser_processes import ParserPool
from datetime import datetime, UTC
parsers = ParserPool(1, seconds=5)
parsers.parse({RSS_091.encode()!r}, url={URL!r}, content_type="", at=datetime.now(UTC), at_most=1)
print(next(iter(parsers._alive))._process.pid, flush=True)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parser = int(parent.stdout.readline())
        assert not gone(parser)
        parent.kill()
    wait_for(lambda: gone(parser))
