"""The library on SQLite, PostgreSQL 18 and 16: what is kept comes back, and the planted passages are found."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from apps.extraction import search, vectors
from apps.extraction.analysis import Analysis, Page, Unreadable
from apps.extraction.chunks import Chunk
from apps.extraction.circuit_breaker import LONGEST, Away, CircuitBreaker
from apps.extraction.document_store import CANDIDATES, LOOK_AROUND, Deleted, DocumentStore, analysis_blob, vectors_blob
from apps.extraction.fields import Field
from apps.extraction.providers import Trouble
from apps.extraction.sql_views import INDEX, complete
from apps.extraction.tables import Base, DocumentChunk, Upload
from apps.shared.database import Database
from apps.shared.embedding_model import Model
from sqlalchemy import insert, select, text
from tests.apps.extraction.conftest import postgres_database
from tests.apps.extraction.planted import PLAIN, QUESTIONS, Question, documents
from tests.postgres import PostgresServer, postgres_server
from tests.process.support import wait_for

from holdfast import Holdfast, InvalidSetting
from holdfast.testing import FakeClock

STORES = ["sqlite", "postgres 18", "postgres 16"]
DIMENSIONS = 256


@contextlib.contextmanager
def library_at(
    url: str, *, dimensions: int = DIMENSIONS, model: str = "local"
) -> Iterator[tuple[DocumentStore, Database]]:
    with Holdfast(url, sqlite_module=vectors.SQLITE) as hf:
        made = complete(dimensions=dimensions, model=model, prefix="holdfast_")
        database = Database(
            url,
            Base.metadata,
            prepare=hf.start,
            complete=made,
            opened=vectors.opened,
            sqlite_module=vectors.SQLITE,
        )
        try:
            yield DocumentStore(database), database
        finally:
            database.close()


@pytest.fixture(scope="module")
def older() -> Iterator[PostgresServer]:
    with postgres_server(16, "--fsync=off") as server:
        yield server


@pytest.fixture(scope="module", params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def url(kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('library') / 'library.db'}"
        return
    server = request.getfixturevalue("postgres" if kind.endswith("18") else "older")
    with postgres_database(server) as found:
        yield found


@pytest.fixture(scope="module")
def opened(url: str) -> Iterator[tuple[DocumentStore, Database]]:
    with library_at(url) as found:
        yield found


@dataclass(frozen=True)
class Planted:
    """A library with planted documents, and what their vectors and those of the questions are."""

    store: DocumentStore
    database: Database
    passages: np.ndarray
    questions: dict[Question, np.ndarray]

    def finds(self, question: Question, *, within: int = 5) -> bool:
        vector = self.questions[question].tolist()
        return question.passage in [
            one.passage.text for one in search.answer(self.store, question.text, vector, limit=within)
        ]


def plant(store: DocumentStore, database: Database, *, most: int = 1000) -> Planted:
    """Put them in directly: no PDF is read for it."""
    model = Model()
    written = list(islice(documents(), most))
    places = [(index, number, one) for index, each in enumerate(written) for number, one in enumerate(each.passages)]
    vectors_of = model.embed([one for _, _, one in places])
    rows = [
        {"document_id": f"{index:032x}", "number": number, "page": 1, "start": 0, "end": len(one), "text": one}
        | {"embedding": vector}
        for (index, number, one), vector in zip(places, vectors_of, strict=True)
    ]
    with database.write() as session:
        if not database.is_sqlite:
            session.execute(text("drop index ix_document_chunks_embedding"))  # it is quicker made than kept
        session.add_all(_upload(f"{index:032x}", each.name) for index, each in enumerate(written))
        session.flush()
        session.execute(insert(DocumentChunk), rows)
        if not database.is_sqlite:
            session.execute(text(INDEX))
        session.execute(text("analyze"))
    asked = [*QUESTIONS, *PLAIN]
    questions = dict(zip(asked, model.embed([one.text for one in asked]), strict=True))
    return Planted(store, database, vectors_of, questions)


@contextlib.contextmanager
def fresh(server: PostgresServer | Path) -> Iterator[tuple[DocumentStore, Database]]:
    """A library of its own, in a folder or on a server, where so few passages would be looked through without need."""
    with contextlib.ExitStack() as open_:
        if isinstance(server, Path):
            url = f"sqlite:///{server / 'fresh.db'}"
        else:
            url = open_.enter_context(postgres_database(server))
            url += f"{'&' if '?' in url else '?'}options=-cenable_seqscan%3Doff%20-cenable_sort%3Doff"
        yield open_.enter_context(library_at(url))


def _upload(document_id: str, name: str = "a.pdf") -> Upload:
    return Upload(
        id=document_id,
        name=name,
        size=1,
        sha256="0" * 64,
        blob=document_id,
        created_at=FakeClock().now(),
        created_by="a test",
        run_id=document_id,
    )


def recall(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def recall_of_the_index(planted: Planted, asked: Sequence[Question]) -> float:
    """How many of the nearest are found; by values, for of passages that say the same either may be the one."""
    shares = []
    for question in asked:
        vector = planted.questions[question]
        exact = np.sort(planted.passages @ vector)[::-1][:CANDIDATES]
        near = [one.nearness for one in planted.store.nearest(vector.tolist())]
        assert len(near) == CANDIDATES
        assert near == sorted(near, reverse=True)
        shares.append(np.mean([one >= exact[-1] - 1e-5 for one in near]))
    return float(np.mean(shares))


@pytest.mark.contract("X7")
def test_the_planted_passages_are_found_among_a_thousand_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Measured with the weights of today: all of the plain questions, 25 of 48 paraphrases (12 of 24 held out).

    A paraphrase shares hardly a word with its passage: that is what the small model from the wheel can't do better.
    """
    with fresh(tmp_path) as opened:
        planted = plant(*opened)
        found = {question: planted.finds(question) for question in planted.questions}
        told = {
            "plain": recall([found[one] for one in PLAIN]),
            "paraphrased": recall([found[one] for one in QUESTIONS]),
            "held out": recall([found[one] for one in QUESTIONS if one.is_held_out]),
        }
        record_property("recall@5", told)
        assert told["plain"] >= 0.95, told
        assert told["paraphrased"] >= 0.45, told
        assert told["held out"] >= 0.4, told
        assert recall_of_the_index(planted, PLAIN[::4]) == 1  # it is no index: all are compared

        # On the tuning part, 13 of 24 are found; without the words' weights and with alike ones told, 9.
        tuning = [one for one in QUESTIONS if not one.is_held_out]
        monkeypatch.setattr(search, "WORDS_WEIGH", 0.0)
        monkeypatch.setattr(search, "ALIKE", 2.0)
        assert recall([found[one] for one in tuning]) > recall([planted.finds(one) for one in tuning])


@pytest.mark.contract("X7")
def test_postgres_finds_them_by_its_index(
    postgres: PostgresServer, record_property: Callable[[str, object], None]
) -> None:
    with fresh(postgres) as opened:
        planted = plant(*opened)
        assert recall([planted.finds(one) for one in PLAIN[::3]]) >= 0.95
        index = recall_of_the_index(planted, [*QUESTIONS, *PLAIN][::4])
        record_property("recall of the index", index)
        assert index >= 0.97
        assert is_indexed(planted)


def test_an_older_postgres_finds_them_by_its_index(older: PostgresServer) -> None:
    with fresh(older) as opened:
        planted = plant(*opened, most=200)
        assert is_indexed(planted)
        assert recall_of_the_index(planted, PLAIN[::8]) >= 0.97


def is_indexed(planted: Planted) -> bool:
    """Whether the plan of a search goes by the index."""
    explain = (
        "explain select c.number, u.name from document_chunks c join uploads u on u.id = c.document_id "
        f"order by c.embedding <=> cast(:vector as vector) limit {CANDIDATES}"
    )
    with planted.database.read() as session:
        session.execute(text(LOOK_AROUND))
        vector = vectors.to_text(planted.questions[QUESTIONS[0]])
        return "ix_document_chunks_embedding" in "\n".join(session.execute(text(explain), {"vector": vector}).scalars())


def test_an_empty_library_finds_nothing(tmp_path: Path) -> None:
    with library_at(f"sqlite:///{tmp_path / 'empty.db'}") as (store, _):
        assert store.nearest([1.0] + [0.0] * 255) == []
        assert search.answer(store, "anything?", [1.0] + [0.0] * 255) == []


def test_what_was_read_comes_back_and_replaces_what_was_there(opened: tuple[DocumentStore, Database]) -> None:
    store, database = opened
    document_id = "f" * 32
    with database.write() as session:
        session.add(_upload(document_id))
    for words in ("first", "second"):
        analysis = Analysis(pages=[Page(number=1, text=f"{words} reading")])
        found = [Chunk(page=1, start=0, end=len(words), text=words)]
        stated = [Field(name="Name", value=words, page=1, source="pair", confidence=1.0)]
        with database.write() as session:
            numbers = np.eye(1, DIMENSIONS, dtype=np.float32)
            store.keep(session, document_id, analysis, stated, found, numbers, embedded_by="local")
    assert [page.text for page in store.pages(document_id, first=1, limit=9)] == ["second reading"]
    assert [field.value for field in store.fields(document_id)] == ["second"]
    assert [chunk.text for chunk in store.chunks(document_id, first=0, limit=9)] == ["second"]
    with database.read() as session:
        kept = session.execute(select(Upload.pages, Upload.embedding).where(Upload.id == document_id)).one()
    assert (kept.pages, kept.embedding[:2]) == (1, [1.0, 0.0])
    left = [analysis_blob(document_id), vectors_blob(document_id, ["second"]), "e" * 32, "part00000000000000000000"]
    assert list(store.unneeded([document_id, *left])) == left
    with pytest.raises(Deleted), database.write() as session:
        store.keep(session, "0" * 31 + "x", analysis, [], [], numbers[:0], embedded_by="local")


def test_vectors_of_another_model_are_refused_at_the_start(url: str, opened: tuple[DocumentStore, Database]) -> None:
    with opened[1].write() as session:
        session.merge(_upload("d" * 32)).embedded_by = "local"
    with pytest.raises(InvalidSetting, match="another model"), library_at(url, model="openai large") as (store, _):
        store.count()


def trouble(*, alive: bool = False) -> None:
    raise Trouble("documents", "it fell over", alive=alive)


def fails(breaker: CircuitBreaker, *, alive: bool = False) -> None:
    with pytest.raises(Trouble):
        breaker.ask("documents", lambda: trouble(alive=alive))


def test_a_service_that_keeps_failing_is_left_alone_and_tried_by_one(opened: tuple[DocumentStore, Database]) -> None:
    clock = FakeClock()
    pause = timedelta(seconds=10)
    breaker, other = (CircuitBreaker(opened[1], failures=3, pause=pause, now=clock.now) for _ in range(2))
    for _ in range(2):
        fails(breaker)
    fails(breaker, alive=True)  # it answers, so it is there
    for _ in range(3):
        fails(other)
    with pytest.raises(Away) as away:
        breaker.ask("documents", lambda: 1)
    assert away.value.wait == pause
    clock.advance(pause)
    asked: list[int] = []
    with pytest.raises(Away):  # while one tries, no other does
        breaker.ask("documents", lambda: other.ask("documents", lambda: asked.append(1)))
    assert asked == []
    clock.advance(pause)  # who tried has died with it: the next one may
    fails(other)
    with pytest.raises(Away) as away:
        breaker.ask("documents", lambda: 1)
    assert away.value.wait == 2 * pause
    for _ in range(12):
        clock.advance(LONGEST)
        fails(breaker)
    clock.advance(LONGEST)
    assert breaker.ask("documents", lambda: 7) == 7
    assert other.ask("documents", lambda: 8) == 8


def test_many_that_were_under_way_open_it_once(opened: tuple[DocumentStore, Database]) -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(opened[1], failures=3, pause=timedelta(seconds=10), now=clock.now)
    ready = threading.Barrier(6)

    def question() -> None:
        ready.wait(60)
        trouble()

    def ask() -> None:
        with contextlib.suppress(Trouble):
            breaker.ask("embeddings", question)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(Away) as away:
        breaker.ask("embeddings", lambda: 1)
    assert away.value.wait == timedelta(seconds=10)
    clock.advance(timedelta(seconds=10))
    with pytest.raises(Unreadable):  # an answer, if not a good one
        breaker.ask("embeddings", lambda: (_ for _ in ()).throw(Unreadable("EMPTY", "it has no pages")))
    assert breaker.ask("embeddings", lambda: 1) == 1


def test_of_many_who_ask_when_the_pause_is_over_one_tries(opened: tuple[DocumentStore, Database]) -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(opened[1], failures=1, pause=timedelta(seconds=10), now=clock.now)
    with pytest.raises(Trouble):
        breaker.ask("reader", trouble)
    clock.advance(timedelta(seconds=10))
    together, over = threading.Barrier(6), threading.Event()
    tried: list[int] = []
    refused: list[int] = []

    def question() -> None:
        tried.append(1)
        over.wait(60)

    def ask() -> None:
        together.wait(60)
        try:
            breaker.ask("reader", question)
        except Away:
            refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(tried) + len(refused) == 6, "one waits for its answer, and the others are told")
    over.set()
    for thread in threads:
        thread.join()
    assert len(tried) == 1
