-- Where whoever submitted the run stood in a trace, so that the run goes on from there.
alter table holdfast_runs add column trace text
go
-- The how-manieth step of its attempt: the order in which steps were remembered.
alter table holdfast_steps add column number integer not null default 0
go
update holdfast_steps
set
    number = (
        select count(*)
        from holdfast_steps as s
        where
            s.run_id = holdfast_steps.run_id
            and s.attempt = holdfast_steps.attempt
            and (s.finished_at < holdfast_steps.finished_at or (s.finished_at = holdfast_steps.finished_at and s.name <= holdfast_steps.name))
    )
go
create index holdfast_ix_steps_order on holdfast_steps (run_id, attempt, number)
go
-- What was done by hand, for whoever asks who did it.
create index holdfast_ix_events_operated on holdfast_events (id) where kind = 'OPERATED'
go
-- The transaction that wrote an event: numbers are given before the commit, so only this says what may still come.
alter table holdfast_events add column tx bigint not null default 0
go
alter table holdfast_events alter column tx set default (cast(cast(pg_current_xact_id() as text) as bigint))
go
create index holdfast_ix_events_tx on holdfast_events (tx, id)
go
-- Who may look and steer: a token's or a session's digest, never the secret itself.
create table holdfast_passes (
    digest text collate "C" not null,
    name text collate "C" not null,
    role text collate "C" not null check (role in ('viewer', 'operator', 'admin')),
    kind text collate "C" not null check (kind in ('token', 'session')),
    made_at timestamptz not null,
    expires_at timestamptz,
    primary key (digest)
)
go
create unique index holdfast_ix_passes_name on holdfast_passes (name) where kind = 'token'
go
-- What ended in a span of time, counted: how many, how long they waited and ran (histograms as JSON). `grain` is the
-- length of the span in minutes; a row of job `*` and queue `*` is about all of them.
create table holdfast_tallies (
    grain integer not null,
    job text collate "C" not null,
    queue text collate "C" not null,
    since_at timestamptz not null,
    state text collate "C" not null,
    runs bigint not null,
    waited text not null,
    ran text not null,
    primary key (grain, job, queue, since_at, state)
)
go
create index holdfast_ix_tallies_since on holdfast_tallies (grain, since_at)
go
-- The same since the beginning; these only grow.
create table holdfast_totals (
    job text collate "C" not null,
    queue text collate "C" not null,
    state text collate "C" not null,
    runs bigint not null,
    waited text not null,
    ran text not null,
    primary key (job, queue, state)
)
go
-- What no row proves, counted: lost leases, takeovers, refused submissions, missed slots; these only grow.
create table holdfast_counters (
    name text collate "C" not null,
    label text collate "C" not null,
    value bigint not null,
    primary key (name, label)
)
go
-- How far something has been done that is done piece by piece, by whoever comes first.
create table holdfast_marks (
    name text collate "C" not null,
    done_at timestamptz not null,
    primary key (name)
)
go
-- When someone asked the worker to claim no more, finish what it has and end.
alter table holdfast_workers add column drain_at timestamptz
go
-- Runs that needed others, by which the uses of a build are counted; the runs that need nothing are not in it.
create index holdfast_ix_runs_needed on holdfast_runs (id) where needed is not null
go
-- How much waited and ran at some moment of a minute, and for how many seconds the oldest had been ready.
create table holdfast_samples (
    minute_at timestamptz not null,
    waiting bigint not null,
    running bigint not null,
    oldest bigint,
    primary key (minute_at)
)
go
-- The text as JSON; null if it can't be decoded: no JSON, or with a character that PostgreSQL's texts can't hold.
create function holdfast_json(stored text) returns json language plpgsql immutable as $$
begin
    perform cast(stored as jsonb);
    return cast(stored as json);
exception
    when data_exception or program_limit_exceeded then
        return null;
end
$$
go
-- An argument of a run as text, 'null' if there is none; null if the stored arguments can't be decoded.
create function holdfast_argument(stored text, kind text, path text[]) returns text language plpgsql immutable as $$
begin
    return coalesce(
        case kind when 'pipeline' then cast(stored as json) -> 'arguments' else cast(stored as json) end #>> path,
        'null'
    );
exception
    when data_exception or program_limit_exceeded then
        return null;
end
$$
