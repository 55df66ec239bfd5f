-- A schedule, ours until this transaction ends.
select
    name,
    spec,
    considered_at,
    paused_at,
    note,
    seen_at
from holdfast_schedules
where name = :name
for update
