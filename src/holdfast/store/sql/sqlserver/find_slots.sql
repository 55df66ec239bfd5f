-- The latest slots of a schedule, and what became of their runs.
select
    s.job,
    s.slot_at,
    s.state,
    s.run_id,
    s.because,
    s.into_at,
    s.manual,
    s.claimed_at,
    r.state as run_state,
    r.started_at,
    r.finished_at,
    r.holder,
    r.error
from (
    select top (:limit)
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
) as s
left join holdfast_run as r on r.id = s.run_id
order by s.slot_at desc
