-- The slot that a run has.
select
    job,
    slot_at,
    manual
from holdfast_slots
where run_id = :run_id and run_id is not null
