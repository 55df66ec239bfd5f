-- What was recorded of a run, the newest first.
select top (:limit)
    id,
    run_id,
    kind,
    attempt,
    data,
    happened_at
from holdfast_events
where run_id = :run_id and id < :before
order by id desc
