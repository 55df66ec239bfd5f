-- Slots that are claimed and whose runs no worker has ever started. A run that waits for its children has been.
select
    s.run_id,
    s.claimed_by
from (
    select
        run_id,
        claimed_by
    from holdfast_schedule_slots
    where outcome = 'queued'
) as s
left join holdfast_waits as w on w.run_id = s.run_id
left join holdfast_ready as r on r.run_id = s.run_id
where coalesce(r.attempt, w.attempt) = 0
order by s.run_id
