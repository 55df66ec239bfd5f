"""Retention: only what may go goes, all of it or nothing, and never what an edition refers to."""

from __future__ import annotations

import logging
import sqlite3.dbapi2 as sqlite
from datetime import date, datetime, timedelta

import pytest
from apps.dailybrief.editions import publish
from apps.dailybrief.events import cluster
from apps.dailybrief.retention import NotPurgeable, clean, purge
from apps.dailybrief.tables import IMMUTABLE, PURGE_ALLOWED, REFERRED, Edition, EditionArticle, Feed, RawArticle
from sqlalchemy import insert, text, true, update
from sqlalchemy.exc import DBAPIError
from tests.apps.dailybrief.labelled_news import Item, items
from tests.apps.dailybrief.newsroom import START, Crash, Newsroom

LATER = START + timedelta(days=60)
NEWS = [item for item in items("tuning") if item.topic in ("floods", "northgate-rovers", "tennis")]
PUBLISHED = date(2025, 11, 2)


@pytest.fixture
def filled(newsroom: Newsroom) -> Newsroom:
    """Some days of news, one of them published, and one article of which nobody made an event yet."""
    newsroom.store(NEWS)
    cluster(newsroom.database, newsroom.settings, now=START + timedelta(days=6))
    publish(newsroom.database, newsroom.settings, day=PUBLISHED, now=START + timedelta(days=6))
    newsroom.store([_item("Nobody grouped this yet", START)])
    return newsroom


def _item(title: str, at: datetime) -> Item:
    return Item(topic="", event="", source="Valley Paper", at=at, title=title, summary="")


@pytest.mark.contract("J14")
def test_what_is_old_goes_and_what_an_edition_refers_to_stays(filled: Newsroom) -> None:
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
    # Nor does what is left get in the way of new articles.
    filled.store([_item("A new day", LATER)])
    assert cluster(filled.database, filled.settings)["begun"] == 1


@pytest.mark.contract("J14")
def test_a_crash_at_any_statement_deletes_nothing(filled: Newsroom) -> None:
    before, crashes = filled.rows(), 0
    for statement in range(1, 20):
        filled.crash_at(statement)
        try:
            clean(filled.database, filled.settings, now=LATER)
        except Crash:
            crashes += 1
        else:
            break
        finally:
            filled.repair()
        assert filled.rows() == before
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
def test_the_cut_off_is_a_setting_and_exact(newsroom: Newsroom) -> None:
    newsroom.store([_item("Just old enough", START), _item("Just not", START + timedelta(microseconds=1))])
    settings = newsroom.settings.model_copy(update={"retain_articles": timedelta(days=2)})
    assert clean(newsroom.database, settings, now=START + timedelta(days=2))["raw_articles"] == 0
    assert clean(newsroom.database, settings, now=START + timedelta(days=2, microseconds=1))["raw_articles"] == 1
    assert [row[5] for row in newsroom.contents("raw_articles")] == ["Just not"]


def test_an_old_article_that_has_just_come_in_stays_a_while(newsroom: Newsroom) -> None:
    # Or it would be deleted every night and read again every morning, for as long as its feed has it.
    newsroom.store([_item("From the archive", START)])
    with newsroom.database.write() as session:
        session.execute(update(RawArticle).values(fetched_at=LATER))
    assert clean(newsroom.database, newsroom.settings, now=LATER)["rows"] == 0
    cluster(newsroom.database, newsroom.settings, now=LATER)
    assert clean(newsroom.database, newsroom.settings, now=LATER)["rows"] == 0
    assert clean(newsroom.database, newsroom.settings, now=LATER + timedelta(days=31))["rows"] == 3


def test_an_event_that_goes_on_keeps_its_first_articles(newsroom: Newsroom) -> None:
    title = "Dam breaks in Neisdorf, river Loiden floods village"
    newsroom.store([_item(title, START), _item(f"{title} again", START + timedelta(days=2))])
    assert cluster(newsroom.database, newsroom.settings, now=START)["begun"] <= 2
    with newsroom.database.write() as session:  # one event, whatever the rules of likeness are
        session.execute(text("update cluster_articles set cluster_id = (select min(id) from clusters)"))
        session.execute(text("delete from clusters where id > (select min(cluster_id) from cluster_articles)"))
        session.execute(text("update clusters set article_count = 2"))
        session.execute(text("update clusters set last_at = (select max(published_at) from raw_articles)"))
    assert clean(newsroom.database, newsroom.settings, now=START + timedelta(days=31))["rows"] == 0
    assert newsroom.counts_are_right()


@pytest.mark.contract("J14")
def test_a_table_that_is_not_on_the_list_is_refused(filled: Newsroom) -> None:
    before = filled.rows()
    for table in (Edition, EditionArticle, Feed):
        with pytest.raises(NotPurgeable), filled.database.write() as session:
            purge(session, table, true())
    assert filled.rows() == before
    assert not set(PURGE_ALLOWED) & {*IMMUTABLE, "feeds"}


@pytest.mark.contract("J14")
def test_what_an_edition_refers_to_stays_even_if_its_link_is_gone(filled: Newsroom) -> None:
    with filled.database.write() as session:
        session.execute(text("delete from cluster_articles"))
    clean(filled.database, filled.settings, now=LATER)
    referred = {row[1] for row in filled.contents("edition_articles")}
    assert {row[0] for row in filled.contents("raw_articles")} == referred


@pytest.mark.contract("J14")
def test_the_database_itself_spares_what_an_edition_refers_to(filled: Newsroom) -> None:
    with filled.database.write() as session:
        session.execute(text("delete from cluster_articles"))  # so that only the edition is in the way
    before = filled.rows()
    for table, column in REFERRED.items():
        statement = f"delete from {table} where id in (select {column} from edition_articles)"
        with pytest.raises(DBAPIError), filled.database.write() as session:
            session.execute(text(statement))
        if filled.url.startswith("sqlite"):
            # A shell does not ask for foreign keys.
            stranger = sqlite.connect(filled.url.removeprefix("sqlite:///"))
            with pytest.raises(sqlite.DatabaseError, match="an edition refers to this row"):
                stranger.execute(statement)
            stranger.close()
    assert filled.rows() == before
    # Nor can an edition refer to what is not there.
    edition = {"edition_id": 1, "raw_article_id": 999_999, "cluster_id": 999_999, "position": 1}
    with pytest.raises(DBAPIError), filled.database.write() as session:
        session.execute(insert(EditionArticle).values(**edition))
