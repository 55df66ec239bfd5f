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
-- Who may look and steer: a token's or a session's digest, never the secret itself.
create table holdfast_passes (
    digest text not null,
    name text not null,
    role text not null check (role in ('viewer', 'operator', 'admin')),
    kind text not null check (kind in ('token', 'session')),
    made_at text not null,
    expires_at text,
    primary key (digest)
) without rowid
go
create unique index holdfast_ix_passes_name on holdfast_passes (name) where kind = 'token'
go
-- What ended in a span of time, counted: how many, how long they waited and ran (histograms as JSON). `grain` is the
-- length of the span in minutes; a row of job `*` and queue `*` is about all of them.
create table holdfast_tallies (
    grain integer not null,
    job text not null,
    queue text not null,
    since_at text not null,
    state text not null,
    runs integer not null,
    waited text not null,
    ran text not null,
    primary key (grain, job, queue, since_at, state)
) without rowid
go
create index holdfast_ix_tallies_since on holdfast_tallies (grain, since_at)
go
-- The same since the beginning; these only grow.
create table holdfast_totals (
    job text not null,
    queue text not null,
    state text not null,
    runs integer not null,
    waited text not null,
    ran text not null,
    primary key (job, queue, state)
) without rowid
go
-- What no row proves, counted: lost leases, takeovers, refused submissions, missed slots; these only grow.
create table holdfast_counters (
    name text not null,
    label text not null,
    value integer not null,
    primary key (name, label)
) without rowid
go
-- How far something has been done that is done piece by piece, by whoever comes first.
create table holdfast_marks (
    name text not null,
    done_at text not null,
    primary key (name)
) without rowid
go
-- When someone asked the worker to claim no more, finish what it has and end.
alter table holdfast_workers add column drain_at text
go
-- Runs that needed others, by which the uses of a build are counted; the runs that need nothing are not in it.
create index holdfast_ix_runs_needed on holdfast_runs (id) where needed is not null
go
drop view holdfast_build
go
-- Each build with the run that makes it. Not by way of the other view: joined to a table, that is read through whole.
create view holdfast_build as
select
    b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
    case
        when b.stale_at is not null or r.id is null then 'stale'
        when o.state = 'succeeded' then 'ready'
        when o.state = 'timed_out' then 'failed'
        when o.state is not null then o.state
        when l.run_id is not null then 'building'
        else 'queued'
    end as state,
    b.stale_at,
    b.because,
    b.since_at,
    coalesce(o.holder, l.holder) as holder,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    o.failure_type,
    o.error,
    o.result,
    (select count(*) from holdfast_needs as n where n.needed = b.run_id) as waiting
from holdfast_builds as b
left join holdfast_runs as r on r.id = b.run_id
left join holdfast_outcomes as o on o.run_id = b.run_id
left join holdfast_leases as l on l.run_id = b.run_id
go
-- How much waited and ran at some moment of a minute, and for how many seconds the oldest had been ready.
create table holdfast_samples (
    minute_at text not null,
    waiting integer not null,
    running integer not null,
    oldest integer,
    primary key (minute_at)
) without rowid
