"""History: fills a database with a million finished runs, and some that wait, run, or belong to pipelines."""

from __future__ import annotations

from datetime import timedelta

import psycopg

from holdfast import Context, Holdfast, Policy
from holdfast.store.transaction import Transaction

FINISHED, READY, WAITING, RUNNING = 1_000_000, 3_000, 3_000, 200
ALL = FINISHED + READY + WAITING + RUNNING
PIPELINES, SEGMENTS, MANY_SEGMENTS, BUILDS, SCHEDULES = 150, 5, 1_000, 300, 20
ROLLUPS = 15_000

# Runs are numbered in this order: finished (one in five failed), ready, waiting, running. Two in three of the waiting
# runs wait for the same key, which a running run holds.
FILL = (
    (
        ALL,
        "insert into holdfast_runs (id, job, queue, priority, run_key, args, policy, tags, created_at) "
        "select {id}, 'job' || (g % 7), 'q' || (g % 3), 0, {key}, {args}, '{policy}', {tags}, {then}",
    ),
    (
        FINISHED,
        "insert into holdfast_outcomes "
        "select {id}, case when g % 5 = 0 then 'failed' when g % 50 = 1 then 'timed_out' else 'succeeded' end, "
        "case when g % 5 = 0 then 'ERROR' end, case when g % 5 = 0 then 'ValueError: no document ' || g end, "
        "'null', 1, 1, 0, 'w1', {then}, {then}",
    ),
    (
        READY,
        "insert into holdfast_ready (run_id, job, queue, rank, claim, attempt, takeovers) "
        "select {ready}, 'job' || (g % 7), 'q' || (g % 3), -(g % 2), 0, 0, 0",
    ),
    (
        WAITING,
        "insert into holdfast_waits "
        "(run_id, job, queue, rank, run_key, claim, attempt, takeovers, dependencies_left, unchecked, entered_at) "
        "select {waiting}, 'job' || (g % 7), 'q' || (g % 3), 0, case when g % 3 = 0 then 'k' || g else 'hot' end, "
        "0, 0, 0, 0, 0, {now}",
    ),
    (
        RUNNING,
        "insert into holdfast_leases "
        "(run_id, job, queue, rank, run_key, claim, attempt, takeovers, holder, started_at, expires_at) "
        "select {running}, 'job' || (g % 7), 'q' || (g % 3), 0, case when g = 1 then 'hot' else 'r' || g end, "
        "1, 1, 0, 'w' || (g % 4), {now}, {later}",
    ),
    (
        RUNNING,
        "insert into holdfast_key_locks (run_key, key_number, run_id) "
        "select case when g = 1 then 'hot' else 'r' || g end, 1, {running}",
    ),
    (
        ROLLUPS,
        "insert into holdfast_rollups "
        "select case g % 3 when 0 then 1 when 1 then 10 else 60 end, 'job' || (g % 7), 'q' || (g % 5), {minute}, "
        "'failed', 1, '{nothing}', '{nothing}'",
    ),
    (300, "insert into holdfast_rollups select 1, '*', '*', {minute}, 'failed', 1, '{nothing}', '{nothing}'"),
    (
        100,
        "insert into holdfast_rollups "
        "select 0, 'job' || (g % 7), 'q' || g, '1970-01-01 00:00:00+00:00', 'failed', 1, '{nothing}', '{nothing}'",
    ),
)
FIRSTS = {"id": 0, "ready": FINISHED, "waiting": FINISHED + READY, "running": FINISHED + READY + WAITING}
POSTGRES = {
    **{name: f"lpad((g + {first})::text, 26, '0')" for name, first in FIRSTS.items()},
    "now": "now()",
    "later": "now() + interval '1 day'",
    "then": f"now() - greatest(0, {FINISHED} - g) * interval '2.5 seconds'",
    "minute": "date_trunc('minute', now()) - g * interval '1 minute'",
    "series": "generate_series(1, {count}) as g",
}
SQLITE = {
    **{name: f"printf('%026d', g + {first})" for name, first in FIRSTS.items()},
    "now": "datetime('now') || '.000000'",
    "later": "datetime('now', '+1 day') || '.000000'",
    "then": f"datetime('now', printf('-%.1f seconds', max(0, {FINISHED} - g) * 2.5)) || '.000000'",
    "minute": "strftime('%Y-%m-%d %H:%M:00.000000', 'now', '-' || g || ' minutes')",
    "series": "(with recursive s (g) as (select 1 union all select g + 1 from s where g < {count}) select g from s)",
}
TEXTS = {
    # A running run has the same key here as in its lease above.
    "key": f"case when g > {FIRSTS['running'] + 1} then 'r' || (g - {FIRSTS['running']}) "
    f"when g > {FIRSTS['running']} then 'hot' else 'k' || (g % 5000) end",
    "policy": Policy().to_json(),
    "nothing": '{"counts":{"3":1},"seconds":1.0}',
    "args": """'{"document_id":"doc-' || (g % 9000) || '","size":' || (g % 64) || '}'""",
    "tags": """'{"tenant":"t' || (g % 100) || '"}'""",
}


def fill(hf: Holdfast) -> None:
    """Execute some real runs, and write all others as rows."""
    _work(hf)
    if hf.settings.url.startswith("sqlite"):
        hf.do(_fill)
        return
    with psycopg.connect(hf.settings.url, autocommit=True) as connection:
        for count, text in FILL:
            connection.execute(_statement(text, count, POSTGRES).encode())
        connection.execute("vacuum analyze")


def _fill(tx: Transaction) -> None:
    for count, text in FILL:
        tx.execute_ddl(_statement(text, count, SQLITE))


def _statement(text: str, count: int, expressions: dict[str, str]) -> str:
    text = f"{text} from {expressions['series'].replace('{count}', str(count))}"
    for name, expression in (TEXTS | expressions).items():
        text = text.replace(f"{{{name}}}", expression)
    return text


def _work(hf: Holdfast) -> None:
    """Execute pipelines, builds and scheduled jobs with a real worker."""
    film = hf.pipeline("film")

    @film.stage()
    def script(ctx: Context, sentences: int) -> list[str]:
        return ctx.segments([f"sentence {number}" for number in range(sentences)])

    @film.stage(after=script, each="sentence")
    def audio(sentence: str) -> str:
        return sentence

    @film.stage(after=audio)
    def render(audio: list[str]) -> int:
        return len(audio)

    @hf.build(name="index")
    def index(corpus: str, fingerprint: str) -> str:
        return corpus

    @hf.job(name="query")
    def query() -> None:
        return None

    def nightly() -> None:
        return None

    for number in range(SCHEDULES):
        hf.schedule(every=timedelta(minutes=number + 1))(hf.job(name=f"nightly-{number}")(nightly))
    hf.start()
    for number in range(BUILDS):
        request = index.request(corpus=f"corpus {number}", fingerprint="one")
        query.using(depends_on=[request]).submit()
    for _ in range(PIPELINES):
        film.submit(sentences=SEGMENTS)
    film.submit(sentences=MANY_SEGMENTS)
    worker = hf.worker(concurrency=50, drain=True)
    worker.start()
    worker.join()
