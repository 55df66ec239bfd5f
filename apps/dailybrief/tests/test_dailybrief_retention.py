"""Retention: deletes only old rows of allowed tables, all or none, and nothing that an edition refers to."""

from __future__ import annotations

import logging
import sqlite3.dbapi2 as sqlite
from datetime import date, datetime, timedelta

import pytest
from apps.dailybrief.editions import publish
from apps.dailybrief.events import cluster
from apps.dailybrief.retention import NotPurgeable, clean, purge
from apps.dailybrief.tables import IMMUTABLE, PURGE_ALLOWED, REFERENCED, Edition, EditionArticle, Feed, RawArticle
from apps.dailybrief.tests.labelled_news import Item, items
from apps.dailybrief.tests.newsroom import START, Newsroom
from sqlalchemy import insert, text, true, update
from sqlalchemy.exc import DBAPIError

LATER = START + timedelta(days=60)
NEWS = [item for item in items("tuning") if item.topic in ("floods", "northgate-rovers", "tennis")]
PUBLISHED = date(2025, 11, 2)


@pytest.fixture
def filled(newsroom: Newsroom) -> Newsroom:
    """Articles of some days, an edition of one day, and one article without an event."""
    newsroom.store(NEWS)
    cluster(newsroom.database, newsroom.settings, now=START + timedelta(days=6))
    publish(newsroom.database, newsroom.settings, day=PUBLISHED, now=START + timedelta(days=6))
    newsroom.store([_item("Not grouped yet", START)])
    return newsroom


def _item(title: str, at: datetime) -> Item:
    return Item(topic="", event="", source="Valley Newspaper", at=at, title=title, summary="")


@pytest.mark.contract("J14")
def test_old_rows_are_deleted_unless_an_edition_refers_to_them(filled: Newsroom) -> None:
    before = filled.rows()
    kept_articles = {row[1] for row in filled.contents("edition_articles")}
    kept_clusters = {row[2] for row in filled.contents("edition_articles")}
    deleted = clean(filled.database, filled.settings, now=LATER)
    after = filled.rows()
    assert deleted == {"rows": sum(deleted[name] for name in PURGE_ALLOWED)} | {
        name: before[name] - after[name] for name in PURGE_ALLOWED
    }
    assert deleted["raw_articles"] > 10
    assert {row[0] for row in filled.contents("clusters")} == kept_clusters
    assert kept_articles <= {row[0] for row in filled.contents("raw_articles")}
    assert filled.counts_are_right()
    untouched = before.keys() - {*PURGE_ALLOWED, "forgotten_articles"}
    assert {name: before[name] for name in untouched} == {name: after[name] for name in untouched}


@pytest.mark.contract("J14")
def test_cleaning_again_deletes_nothing(filled: Newsroom) -> None:
    clean(filled.database, filled.settings, now=LATER)
    left = {name: filled.contents(name) for name in filled.rows()}
    assert set(clean(filled.database, filled.settings, now=LATER).values()) == {0}
    assert {name: filled.contents(name) for name in filled.rows()} == left
    # The remaining rows don't affect new articles.
    filled.store([_item("A new day", LATER)])
    assert cluster(filled.database, filled.settings)["new_events"] == 1


@pytest.mark.contract("J14")
def test_a_crash_at_any_statement_deletes_nothing(filled: Newsroom) -> None:
    before = filled.rows()
    crashes = filled.crashes(
        lambda: clean(filled.database, filled.settings, now=LATER), left=lambda: filled.rows() == before
    )
    assert crashes >= 3
    assert filled.rows()["clusters"] < before["clusters"]


@pytest.mark.contract("J14")
def test_the_counts_are_logged(filled: Newsroom, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "dailybrief"):
        deleted = clean(filled.database, filled.settings, now=LATER)
    (record,) = [record for record in caplog.records if record.message == "retention_deleted"]
    fields = getattr(record, "fields", {})
    assert {name: fields[name] for name in PURGE_ALLOWED} == {name: deleted[name] for name in PURGE_ALLOWED}
    assert fields["before"] == LATER - filled.settings.retain_articles


@pytest.mark.contract("J14")
def test_the_cut_off_is_configurable_and_exact(newsroom: Newsroom) -> None:
    newsroom.store([_item("Just old enough", START), _item("Just not", START + timedelta(microseconds=1))])
    settings = newsroom.settings.model_copy(update={"retain_articles": timedelta(days=2)})
    assert clean(newsroom.database, settings, now=START + timedelta(days=2))["raw_articles"] == 0
    assert clean(newsroom.database, settings, now=START + timedelta(days=2, microseconds=1))["raw_articles"] == 1
    assert [row[5] for row in newsroom.contents("raw_articles")] == ["Just not"]


def test_an_old_article_that_was_just_fetched_is_kept(newsroom: Newsroom) -> None:
    # Otherwise it would be deleted every night and stored again every morning.
    newsroom.store([_item("From the archive", START)])
    with newsroom.database.write() as session:
        session.execute(update(RawArticle).values(fetched_at=LATER))
    assert clean(newsroom.database, newsroom.settings, now=LATER)["rows"] == 0
    cluster(newsroom.database, newsroom.settings, now=LATER)
    assert clean(newsroom.database, newsroom.settings, now=LATER)["rows"] == 0
    assert clean(newsroom.database, newsroom.settings, now=LATER + timedelta(days=31))["rows"] == 3


def test_an_event_with_new_articles_keeps_its_old_ones(newsroom: Newsroom) -> None:
    title = "Dam breaks in Neisdorf, river Loiden floods village"
    newsroom.store([_item(title, START), _item(f"{title} again", START + timedelta(days=2))])
    assert cluster(newsroom.database, newsroom.settings, now=START)["new_events"] <= 2
    with newsroom.database.write() as session:  # force one event, whatever the grouping rules are
        session.execute(text("update cluster_articles set cluster_id = (select min(id) from clusters)"))
        session.execute(text("delete from clusters where id > (select min(cluster_id) from cluster_articles)"))
        session.execute(text("update clusters set article_count = 2"))
        session.execute(text("update clusters set last_at = (select max(published_at) from raw_articles)"))
    assert clean(newsroom.database, newsroom.settings, now=START + timedelta(days=31))["rows"] == 0
    assert newsroom.counts_are_right()


@pytest.mark.contract("J14")
def test_a_table_outside_purge_allowed_is_refused(filled: Newsroom) -> None:
    before = filled.rows()
    for table in (Edition, EditionArticle, Feed):
        with pytest.raises(NotPurgeable), filled.database.write() as session:
            purge(session, table, true())
    assert filled.rows() == before
    assert not set(PURGE_ALLOWED) & {*IMMUTABLE, "feeds"}


@pytest.mark.contract("J14")
def test_rows_in_an_edition_are_kept_even_without_a_link(filled: Newsroom) -> None:
    with filled.database.write() as session:
        session.execute(text("delete from cluster_articles"))
    clean(filled.database, filled.settings, now=LATER)
    referred = {row[1] for row in filled.contents("edition_articles")}
    assert {row[0] for row in filled.contents("raw_articles")} == referred


@pytest.mark.contract("J14")
def test_the_database_refuses_to_delete_rows_in_an_edition(filled: Newsroom) -> None:
    with filled.database.write() as session:
        session.execute(text("delete from cluster_articles"))  # leaves only the references of the edition
    before = filled.rows()
    for table, column in REFERENCED.items():
        statement = f"delete from {table} where id in (select {column} from edition_articles)"
        with pytest.raises(DBAPIError), filled.database.write() as session:
            session.execute(text(statement))
        if filled.url.startswith("sqlite"):
            # Another client, without foreign keys enabled.
            client = sqlite.connect(filled.url.removeprefix("sqlite:///"))
            with pytest.raises(sqlite.DatabaseError, match="an edition refers to this row"):
                client.execute(statement)
            client.close()
    assert filled.rows() == before
    # An edition can't refer to rows that don't exist.
    edition = {"edition_id": 1, "raw_article_id": 999_999, "cluster_id": 999_999, "position": 1}
    with pytest.raises(DBAPIError), filled.database.write() as session:
        session.execute(insert(EditionArticle).values(**edition))
