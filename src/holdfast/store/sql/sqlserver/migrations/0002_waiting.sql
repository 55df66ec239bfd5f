-- Where a run comes from: a build, a slot, a pipeline's stage or segment, another run; and the runs that it needed.
alter table holdfast_runs add kind nvarchar(200) collate latin1_general_100_bin2 null
go
alter table holdfast_runs add parent_id varchar(26) collate latin1_general_100_bin2 null
go
alter table holdfast_runs add stage nvarchar(200) collate latin1_general_100_bin2 null
go
alter table holdfast_runs add segment nvarchar(200) collate latin1_general_100_bin2 null
go
alter table holdfast_runs add needed nvarchar(max) null
go
-- Kept for ever: no retention removes it.
alter table holdfast_runs add audit int not null default 0
go
create unique index holdfast_ix_runs_parent on holdfast_runs (parent_id, stage, segment) where parent_id is not null
go
create index holdfast_ix_runs_again on holdfast_runs (again_of) where again_of is not null
go
create index holdfast_ix_runs_pipelines on holdfast_runs (id) where kind = 'pipeline'
go
-- How many runs may hold the key at once; how many of its needs may still end badly (null: any); what an
-- orchestrator has to do for it before it can go on; which start of its rate is set aside for it.
alter table holdfast_waits add key_limit int not null default 1
go
alter table holdfast_waits add spare int null
go
alter table holdfast_waits add errand nvarchar(200) collate latin1_general_100_bin2 null
go
alter table holdfast_waits add reserved bigint null
go
create index holdfast_ix_waits_errand on holdfast_waits (run_id) where errand is not null and missing <= 0
go
alter table holdfast_ready add key_limit int not null default 1
go
alter table holdfast_ready add number int not null default 1
go
alter table holdfast_ready add reserved bigint null
go
-- Which of the key's holds the run has, and which of its queue's places.
alter table holdfast_leases add key_limit int not null default 1
go
alter table holdfast_leases add number int not null default 1
go
alter table holdfast_leases add check (number between 1 and key_limit)
go
alter table holdfast_leases add place int null
go
drop index holdfast_ix_leases_key on holdfast_leases
go
create unique index holdfast_ix_leases_key on holdfast_leases ([key], number) where [key] is not null
go
create unique index holdfast_ix_leases_place on holdfast_leases (queue, place) where place is not null
go
-- Holds are numbered: one row for each run that may hold the key at once.
create table holdfast_kept (
    [key] nvarchar(400) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    primary key ([key])
)
go
insert into holdfast_kept ([key], run_id)
select
    [key],
    run_id
from holdfast_holds
go
drop table holdfast_holds
go
-- The runs whose turn it is for a key; open (null) between two turns.
create table holdfast_holds (
    [key] nvarchar(400) collate latin1_general_100_bin2 not null,
    number int not null,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    primary key ([key], number)
)
go
insert into holdfast_holds ([key], number, run_id)
select
    [key],
    1,
    run_id
from holdfast_kept
go
drop table holdfast_kept
go
create index holdfast_ix_holds_open on holdfast_holds ([key], number) include (run_id) where run_id is null
go
create unique index holdfast_ix_holds_run on holdfast_holds (run_id) where run_id is not null
go
-- An artifact lies at a place that follows from what it is: of a run, or of a pipeline's stage, version and segment.
create table holdfast_kept (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    attempt int not null,
    size bigint not null,
    sha256 varchar(128) collate latin1_general_100_bin2 not null,
    made_at datetime2(6) not null,
    primary key (run_id, name)
)
go
insert into holdfast_kept (run_id, name, attempt, size, sha256, made_at)
select
    run_id,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
go
drop table holdfast_artifacts
go
-- What was made: where, by which run, and what it must look like.
create table holdfast_artifacts (
    place nvarchar(400) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    attempt int not null,
    size bigint not null,
    sha256 varchar(128) collate latin1_general_100_bin2 not null,
    made_at datetime2(6) not null,
    primary key nonclustered (place, name)
)
go
insert into holdfast_artifacts (place, run_id, name, attempt, size, sha256, made_at)
select
    run_id,
    run_id,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_kept
go
drop table holdfast_kept
go
create index holdfast_ix_artifacts_run on holdfast_artifacts (run_id)
go
-- How many runs may be queued or running, and from when on each is counted; how many may run at once; what the
-- code last said of both; version grows with each submission that counts.
alter table holdfast_queues add max_queued int null
go
alter table holdfast_queues add counted_at datetime2(6) null
go
alter table holdfast_queues add concurrency int null
go
alter table holdfast_queues add declared nvarchar(200) collate latin1_general_100_bin2 null
go
alter table holdfast_queues add version int not null default 0
go
-- One row a run of a bounded queue that has not ended.
create table holdfast_seats (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    queue nvarchar(200) collate latin1_general_100_bin2 not null,
    primary key (run_id)
)
go
create index holdfast_ix_seats_queue on holdfast_seats (queue)
go
-- An outcome gives the seat back.
create trigger holdfast_tr_outcomes_seat on holdfast_outcomes
after insert
as
begin
    set nocount on;
    delete s
    from inserted as e
    inner join holdfast_seats as s with (rowlock) on s.run_id = e.run_id
    option (force order, loop join);
end
go
-- The run that was last submitted as the only one of its kind.
create table holdfast_uniques (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    digest varchar(128) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    primary key (job, digest)
)
go
create index holdfast_ix_uniques_run on holdfast_uniques (run_id)
go
-- The starts that a rate allows in one period: when each was last made, and as the how-manieth of all. Number 0 stands
-- for the rate: how many starts have been made or set aside, and when it may be forgotten.
create table holdfast_rates (
    name nvarchar(404) collate latin1_general_100_bin2 not null,
    number int not null,
    turn bigint not null,
    started_at datetime2(6) null,
    primary key (name, number)
)
go
create index holdfast_ix_rates_idle on holdfast_rates (started_at) where number = 0
go
-- What is made once: the run that makes it, for whoever asks.
create table holdfast_builds (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    scope nvarchar(400) collate latin1_general_100_bin2 not null,
    fingerprint varchar(128) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    stale_at datetime2(6) null,
    because nvarchar(max) null,
    since_at datetime2(6) not null,
    primary key nonclustered (job, scope, fingerprint)
)
go
create index holdfast_ix_builds_run on holdfast_builds (run_id)
go
-- Builds that a run needs and that an orchestrator has yet to get or create.
create table holdfast_asks (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    number int not null,
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    scope nvarchar(400) collate latin1_general_100_bin2 not null,
    fingerprint varchar(128) collate latin1_general_100_bin2 not null,
    must_succeed int not null,
    submission nvarchar(max) not null,
    primary key (run_id, number)
)
go
-- What is to start when; every slot up to considered_at has been decided.
create table holdfast_schedules (
    name nvarchar(200) collate latin1_general_100_bin2 not null,
    spec nvarchar(max) not null,
    considered_at datetime2(6) not null,
    paused_at datetime2(6) null,
    note nvarchar(max) null,
    seen_at datetime2(6) not null,
    primary key (name)
)
go
-- One due time of a schedule: the run that has it, or why none has.
create table holdfast_slots (
    job nvarchar(200) collate latin1_general_100_bin2 not null,
    slot_at datetime2(6) not null,
    state nvarchar(200) collate latin1_general_100_bin2 not null,
    run_id varchar(26) collate latin1_general_100_bin2 null,
    because nvarchar(max) null,
    into_at datetime2(6) null,
    manual int not null,
    claimed_at datetime2(6) not null,
    primary key (job, slot_at)
)
go
create index holdfast_ix_slots_run on holdfast_slots (run_id) where run_id is not null
go
-- A run that ended badly and whose children are yet to be stopped.
create table holdfast_stops (
    parent_id varchar(26) collate latin1_general_100_bin2 not null,
    because nvarchar(max) not null,
    since_at datetime2(6) not null,
    primary key (parent_id)
)
go
drop view holdfast_run
go
-- The familiar picture.
create view holdfast_run as
select
    r.id,
    r.job,
    r.queue,
    r.priority,
    r.[key],
    r.args,
    r.tags,
    r.idempotency_key,
    r.again_of,
    r.kind,
    r.parent_id,
    r.stage,
    r.segment,
    r.needed,
    r.audit,
    r.created_at,
    coalesce(o.state, case when l.run_id is not null then 'running' else 'queued' end) as state,
    case
        when o.run_id is not null then 'outcomes'
        when l.run_id is not null then 'leases'
        when y.run_id is not null then 'ready'
        when w.run_id is not null then 'waits'
    end as place,
    coalesce(o.attempt, l.attempt, y.attempt, w.attempt) as attempt,
    coalesce(o.tries, l.tries, y.tries, w.tries) as tries,
    coalesce(o.takeovers, l.takeovers, y.takeovers, w.takeovers) as takeovers,
    coalesce(o.holder, l.holder) as holder,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    l.expires_at,
    l.deadline_at,
    l.cancel_requested_at,
    w.due_at,
    w.because,
    w.missing,
    w.errand,
    o.failure_type,
    o.error,
    o.result
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
left join holdfast_leases as l on l.run_id = r.id
left join holdfast_ready as y on y.run_id = r.id
left join holdfast_waits as w on w.run_id = r.id
go
-- Each build with the run that makes it.
create view holdfast_build as
select
    b.job,
    b.scope,
    b.fingerprint,
    b.run_id,
    case
        when b.stale_at is not null or v.id is null then 'stale'
        when v.state = 'running' then 'building'
        when v.state = 'succeeded' then 'ready'
        when v.state = 'timed_out' then 'failed'
        else v.state
    end as state,
    b.stale_at,
    b.because,
    b.since_at,
    v.holder,
    v.started_at,
    v.finished_at,
    v.failure_type,
    v.error,
    v.result,
    (select count(*) from holdfast_needs as n where n.needed = b.run_id) as waiting
from holdfast_builds as b
left join holdfast_run as v on v.id = b.run_id
