-- Where whoever submitted the run stood in a trace, so that the run goes on from there.
alter table holdfast_runs add trace nvarchar(200) collate latin1_general_100_bin2 null
go
-- The how-manieth step of its attempt: the order in which steps were remembered.
alter table holdfast_steps add number int not null default 0
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
-- Grows with each event: numbers are given before the commit, so only this says what may still come.
alter table holdfast_events add tx rowversion not null
go
create index holdfast_ix_events_tx on holdfast_events (tx)
go
-- Who may look and steer: a token's or a session's digest, never the secret itself.
create table holdfast_passes (
    digest varchar(128) collate latin1_general_100_bin2 not null,
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    role nvarchar(200) collate latin1_general_100_bin2 not null check (role in ('viewer', 'operator', 'admin')),
    kind nvarchar(200) collate latin1_general_100_bin2 not null check (kind in ('token', 'session')),
    made_at datetime2(6) not null,
    expires_at datetime2(6) null,
    primary key (digest)
)
go
create unique index holdfast_ix_passes_name on holdfast_passes (name) where kind = 'token'
go
-- What ended in a span of time, counted: how many, how long they waited and ran (histograms as JSON). `grain` is the
-- length of the span in minutes; a row of job `*` and queue `*` is about all of them.
create table holdfast_tallies (
    grain int not null,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    since_at datetime2(6) not null,
    state nvarchar(20) collate latin1_general_100_bin2 not null,
    runs bigint not null,
    waited nvarchar(max) not null,
    ran nvarchar(max) not null,
    primary key (grain, job, queue, since_at, state)
)
go
create index holdfast_ix_tallies_since on holdfast_tallies (grain, since_at)
go
-- The same since the beginning; these only grow.
create table holdfast_totals (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    state nvarchar(20) collate latin1_general_100_bin2 not null,
    runs bigint not null,
    waited nvarchar(max) not null,
    ran nvarchar(max) not null,
    primary key (job, queue, state)
)
go
-- What no row proves, counted: lost leases, takeovers, refused submissions, missed slots; these only grow.
create table holdfast_counters (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    label nvarchar(200) collate latin1_general_100_bin2 not null,
    value bigint not null,
    primary key (name, label)
)
go
-- How far something has been done that is done piece by piece, by whoever comes first.
create table holdfast_marks (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    done_at datetime2(6) not null,
    primary key (name)
)
go
-- When someone asked the worker to claim no more, finish what it has and end.
alter table holdfast_workers add drain_at datetime2(6) null
go
-- Runs that needed others, by which the uses of a build are counted; the runs that need nothing are not in it.
create index holdfast_ix_runs_needed on holdfast_runs (id) where needed is not null
go
-- How much waited and ran at some moment of a minute, and for how many seconds the oldest had been ready.
create table holdfast_samples (
    minute_at datetime2(6) not null,
    waiting bigint not null,
    running bigint not null,
    oldest bigint null,
    primary key (minute_at)
)
