-- The latest slots of a schedule, and what became of their runs. Not by the view of runs: SQLite would read all of it.
select
    s.job,
    s.slot_at,
    s.state,
    s.run_id,
    s.because,
    s.into_at,
    s.manual,
    s.claimed_at,
    case
        when r.id is null then null
        when o.state is not null then o.state
        when l.run_id is not null then 'running'
        else 'queued'
    end as run_state,
    coalesce(o.started_at, l.started_at) as started_at,
    o.finished_at,
    coalesce(o.holder, l.holder) as holder,
    o.error
from (
    select
        job,
        slot_at,
        state,
        run_id,
        because,
        into_at,
        manual,
        claimed_at
    from holdfast_slots
    where job = :job and slot_at < :before
    order by slot_at desc
    limit :limit
) as s
left join holdfast_runs as r on r.id = s.run_id
left join holdfast_outcomes as o on o.run_id = s.run_id
left join holdfast_leases as l on l.run_id = s.run_id
order by s.slot_at desc
