"""The document store on SQLite, PostgreSQL 18 and 16, the search for planted passages, and the circuit breaker."""

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
from apps.extraction.circuit_breaker import MAX_PAUSE, CircuitBreaker, CircuitOpen
from apps.extraction.document_store import CANDIDATES, EF_SEARCH, Deleted, DocumentStore, analysis_blob, vectors_blob
from apps.extraction.fields import Field
from apps.extraction.providers import ServiceError
from apps.extraction.sql_views import INDEX, complete
from apps.extraction.tables import Base, DocumentChunk, Upload
from apps.extraction.tests.conftest import postgres_database
from apps.extraction.tests.planted import PLAIN, QUESTIONS, Question, documents
from apps.shared.database import Database
from apps.shared.embedding_model import Model
from sqlalchemy import insert, select, text
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
        complete_tables = complete(dimensions=dimensions, model=model, prefix="holdfast_")
        database = Database(
            url,
            Base.metadata,
            prepare=hf.start,
            complete=complete_tables,
            opened=vectors.load_extension,
            sqlite_module=vectors.SQLITE,
        )
        try:
            yield DocumentStore(database), database
        finally:
            database.close()


@pytest.fixture(scope="module")
def postgres_16() -> Iterator[PostgresServer]:
    with postgres_server(16, "--fsync=off") as server:
        yield server


@pytest.fixture(scope="module", params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def url(kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('library') / 'library.db'}"
        return
    server = request.getfixturevalue("postgres" if kind.endswith("18") else "postgres_16")
    with postgres_database(server) as new_url:
        yield new_url


@pytest.fixture(scope="module")
def library(url: str) -> Iterator[tuple[DocumentStore, Database]]:
    with library_at(url) as opened:
        yield opened


@dataclass(frozen=True)
class Planted:
    """A library with the planted documents, their vectors and the vectors of the questions."""

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
    """Insert the planted documents directly, without PDFs."""
    model = Model()
    planted = list(islice(documents(), most))
    passages = [
        (index, number, passage)
        for index, document in enumerate(planted)
        for number, passage in enumerate(document.passages)
    ]
    embeddings = model.embed([passage for _, _, passage in passages])
    rows = [
        {"document_id": f"{index:032x}", "number": number, "page": 1, "start": 0, "end": len(passage), "text": passage}
        | {"embedding": vector}
        for (index, number, passage), vector in zip(passages, embeddings, strict=True)
    ]
    with database.write() as session:
        if not database.is_sqlite:
            session.execute(text("drop index ix_document_chunks_embedding"))  # creating it afterwards is faster
        session.add_all(_upload(f"{index:032x}", document.name) for index, document in enumerate(planted))
        session.flush()
        session.execute(insert(DocumentChunk), rows)
        if not database.is_sqlite:
            session.execute(text(INDEX))
        session.execute(text("analyze"))
    all_questions = [*QUESTIONS, *PLAIN]
    questions = dict(zip(all_questions, model.embed([question.text for question in all_questions]), strict=True))
    return Planted(store, database, embeddings, questions)


@contextlib.contextmanager
def fresh(server: PostgresServer | Path) -> Iterator[tuple[DocumentStore, Database]]:
    """Open an empty library in a folder or on a server."""
    with contextlib.ExitStack() as stack:
        if isinstance(server, Path):
            url = f"sqlite:///{server / 'fresh.db'}"
        else:
            url = stack.enter_context(postgres_database(server))
            # With so few passages, PostgreSQL would scan the table instead of using the index.
            url += f"{'&' if '?' in url else '?'}options=-cenable_seqscan%3Doff%20-cenable_sort%3Doff"
        yield stack.enter_context(library_at(url))


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


def recall_of_the_index(planted: Planted, questions: Sequence[Question]) -> float:
    """Return the share of the nearest passages that are found, compared by nearness because some texts are equal."""
    shares = []
    for question in questions:
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
    """Measured with the current weights: all plain questions, and 25 of 48 paraphrases (12 of 24 held out).

    A paraphrase shares hardly a word with its passage; the small local model can't find more of them.
    """
    with fresh(tmp_path) as library:
        planted = plant(*library)
        found = {question: planted.finds(question) for question in planted.questions}
        results = {
            "plain": recall([found[one] for one in PLAIN]),
            "paraphrased": recall([found[one] for one in QUESTIONS]),
            "held out": recall([found[one] for one in QUESTIONS if one.is_held_out]),
        }
        record_property("recall@5", results)
        assert results["plain"] >= 0.95, results
        assert results["paraphrased"] >= 0.45, results
        assert results["held out"] >= 0.4, results
        assert recall_of_the_index(planted, PLAIN[::4]) == 1  # SQLite has no index and compares all passages

        # On the tuning part, 13 of 24 are found; without word weights and without merging similar passages, 9.
        tuning = [one for one in QUESTIONS if not one.is_held_out]
        monkeypatch.setattr(search, "WORD_WEIGHT", 0.0)
        monkeypatch.setattr(search, "SIMILARITY", 2.0)
        assert recall([found[one] for one in tuning]) > recall([planted.finds(one) for one in tuning])


@pytest.mark.contract("X7")
def test_postgres_finds_planted_passages_with_its_index(
    postgres: PostgresServer, record_property: Callable[[str, object], None]
) -> None:
    with fresh(postgres) as library:
        planted = plant(*library)
        assert recall([planted.finds(one) for one in PLAIN[::3]]) >= 0.95
        index = recall_of_the_index(planted, [*QUESTIONS, *PLAIN][::4])
        record_property("recall of the index", index)
        assert index >= 0.97
        assert is_indexed(planted)


def test_postgres_16_finds_planted_passages_with_its_index(postgres_16: PostgresServer) -> None:
    with fresh(postgres_16) as library:
        planted = plant(*library, most=200)
        assert is_indexed(planted)
        assert recall_of_the_index(planted, PLAIN[::8]) >= 0.97


def is_indexed(planted: Planted) -> bool:
    """Whether the plan of a search uses the index."""
    explain = (
        "explain select c.number, u.name from document_chunks c join uploads u on u.id = c.document_id "
        f"order by c.embedding <=> cast(:vector as vector) limit {CANDIDATES}"
    )
    with planted.database.read() as session:
        session.execute(text(EF_SEARCH))
        vector = vectors.to_text(planted.questions[QUESTIONS[0]])
        return "ix_document_chunks_embedding" in "\n".join(session.execute(text(explain), {"vector": vector}).scalars())


def test_an_empty_library_finds_nothing(tmp_path: Path) -> None:
    with library_at(f"sqlite:///{tmp_path / 'empty.db'}") as (store, _):
        assert store.nearest([1.0] + [0.0] * 255) == []
        assert search.answer(store, "anything?", [1.0] + [0.0] * 255) == []


def test_saved_results_are_read_back_and_replace_earlier_ones(library: tuple[DocumentStore, Database]) -> None:
    store, database = library
    document_id = "f" * 32
    with database.write() as session:
        session.add(_upload(document_id))
    for words in ("first", "second"):
        analysis = Analysis(pages=[Page(number=1, text=f"{words} reading")])
        chunks = [Chunk(page=1, start=0, end=len(words), text=words)]
        fields = [Field(name="Name", value=words, page=1, source="pair", confidence=1.0)]
        with database.write() as session:
            numbers = np.eye(1, DIMENSIONS, dtype=np.float32)
            store.save(session, document_id, analysis, fields, chunks, numbers, embedded_by="local")
    assert [page.text for page in store.pages(document_id, first=1, limit=9)] == ["second reading"]
    assert [field.value for field in store.fields(document_id)] == ["second"]
    assert [chunk.text for chunk in store.chunks(document_id, first=0, limit=9)] == ["second"]
    with database.read() as session:
        saved = session.execute(select(Upload.pages, Upload.embedding).where(Upload.id == document_id)).one()
    assert (saved.pages, saved.embedding[:2]) == (1, [1.0, 0.0])
    unused = [analysis_blob(document_id), vectors_blob(document_id, ["second"]), "e" * 32, "part00000000000000000000"]
    assert list(store.unused([document_id, *unused])) == unused
    with pytest.raises(Deleted), database.write() as session:
        store.save(session, "0" * 31 + "x", analysis, [], [], numbers[:0], embedded_by="local")


def test_vectors_of_another_model_are_refused_at_start(url: str, library: tuple[DocumentStore, Database]) -> None:
    with library[1].write() as session:
        session.merge(_upload("d" * 32)).embedded_by = "local"
    with (
        pytest.raises(InvalidSetting, match="use another database"),
        library_at(url, model="openai large") as (store, _),
    ):
        store.count()


def fail(*, reachable: bool = False) -> None:
    raise ServiceError("documents", "internal error", reachable=reachable)


def call_and_fail(breaker: CircuitBreaker, *, reachable: bool = False) -> None:
    with pytest.raises(ServiceError):
        breaker.call("documents", lambda: fail(reachable=reachable))


def test_a_failing_service_is_not_called_until_one_trial_call_succeeds(
    library: tuple[DocumentStore, Database],
) -> None:
    clock = FakeClock()
    pause = timedelta(seconds=10)
    breaker, other = (CircuitBreaker(library[1], failures=3, pause=pause, now=clock.now) for _ in range(2))
    for _ in range(2):
        call_and_fail(breaker)
    call_and_fail(breaker, reachable=True)  # the service answers, so the count starts again
    for _ in range(3):
        call_and_fail(other)
    with pytest.raises(CircuitOpen) as refused:
        breaker.call("documents", lambda: 1)
    assert refused.value.wait == pause
    clock.advance(pause)
    calls: list[int] = []
    with pytest.raises(CircuitOpen):  # during a trial call, no other call is made
        breaker.call("documents", lambda: other.call("documents", lambda: calls.append(1)))
    assert calls == []
    clock.advance(pause)  # the trial call never ended, so another one is allowed after the pause
    call_and_fail(other)
    with pytest.raises(CircuitOpen) as refused:
        breaker.call("documents", lambda: 1)
    assert refused.value.wait == 2 * pause
    for _ in range(12):
        clock.advance(MAX_PAUSE)
        call_and_fail(breaker)
    clock.advance(MAX_PAUSE)
    assert breaker.call("documents", lambda: 7) == 7
    assert other.call("documents", lambda: 8) == 8


def test_concurrent_failures_open_the_circuit_once(library: tuple[DocumentStore, Database]) -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(library[1], failures=3, pause=timedelta(seconds=10), now=clock.now)
    ready = threading.Barrier(6)

    def request() -> None:
        ready.wait(60)
        fail()

    def call() -> None:
        with contextlib.suppress(ServiceError):
            breaker.call("embeddings", request)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(CircuitOpen) as refused:
        breaker.call("embeddings", lambda: 1)
    assert refused.value.wait == timedelta(seconds=10)
    clock.advance(timedelta(seconds=10))
    with pytest.raises(Unreadable):  # the service answered, so the circuit closes
        breaker.call("embeddings", lambda: (_ for _ in ()).throw(Unreadable("EMPTY", "the PDF has no pages")))
    assert breaker.call("embeddings", lambda: 1) == 1


def test_only_one_of_many_callers_makes_the_trial_call(library: tuple[DocumentStore, Database]) -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(library[1], failures=1, pause=timedelta(seconds=10), now=clock.now)
    with pytest.raises(ServiceError):
        breaker.call("reader", fail)
    clock.advance(timedelta(seconds=10))
    ready, over = threading.Barrier(6), threading.Event()
    called: list[int] = []
    refused: list[int] = []

    def request() -> None:
        called.append(1)
        over.wait(60)

    def call() -> None:
        ready.wait(60)
        try:
            breaker.call("reader", request)
        except CircuitOpen:
            refused.append(1)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(called) + len(refused) == 6, "one call is under way, and the others are refused")
    over.set()
    for thread in threads:
        thread.join()
    assert len(called) == 1
