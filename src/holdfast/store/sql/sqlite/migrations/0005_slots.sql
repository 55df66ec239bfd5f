-- The worker that claimed the slot. For a slot that was triggered by hand it is the live worker that is to run it.
alter table holdfast_slots add column claimed_by text
go
create index holdfast_ix_slots_claimed on holdfast_slots (claimed_at, run_id)
go
-- Runs of slots that wait, for the view below. The key of a slot's run is 'schedule:' and the name of its job.
create index holdfast_ix_waits_slots on holdfast_waits (run_id) where key >= 'schedule:' and key < 'schedule;'
go
-- Slots and their outcomes, for any SQL client. Each outcome is a constant of a branch of its own: a condition on the
-- outcome leaves only the branches that can have it. `cross join` keeps the order of the tables.
create view holdfast_schedule_slots as
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('ran' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(null as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'succeeded'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('failed' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'failed'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('cancelled' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'cancelled'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('skipped_timeout' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    o.started_at,
    o.finished_at,
    o.holder as worker,
    cast(coalesce(o.error, o.failure_type) as text) as error
from holdfast_slots as s
cross join holdfast_outcomes as o
where s.state = 'claimed' and o.run_id = s.run_id and o.state = 'timed_out'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast(case when l.run_id is null then 'queued' else 'running' end as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    l.started_at,
    cast(null as text) as finished_at,
    l.holder as worker,
    cast(null as text) as error
from (
    select run_id
    from holdfast_holds
    where key >= 'schedule:' and key < 'schedule;' and run_id is not null
    union
    select run_id
    from holdfast_waits
    where key >= 'schedule:' and key < 'schedule;'
) as a
cross join holdfast_slots as s
left join holdfast_leases as l on l.run_id = s.run_id
where s.state = 'claimed' and s.run_id = a.run_id
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('skipped' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    cast(null as text) as started_at,
    cast(null as text) as finished_at,
    cast(null as varchar(128)) as worker,
    s.because as error
from holdfast_slots as s
where s.state = 'skipped'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('missed' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    cast(null as text) as started_at,
    cast(null as text) as finished_at,
    cast(null as varchar(128)) as worker,
    s.because as error
from holdfast_slots as s
where s.state = 'missed'
union all
select
    s.job as job_name,
    s.slot_at as scheduled_for,
    cast('coalesced' as varchar(16)) as outcome,
    s.run_id,
    s.claimed_at,
    s.claimed_by,
    s.manual,
    cast(null as text) as started_at,
    cast(null as text) as finished_at,
    cast(null as varchar(128)) as worker,
    s.because as error
from holdfast_slots as s
where s.state = 'coalesced'
