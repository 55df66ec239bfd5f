-- A schedule, held still until this transaction ends by writing it as it is.
update s
set considered_at = s.considered_at
output
    inserted.name,
    inserted.spec,
    inserted.considered_at,
    inserted.paused_at,
    inserted.note,
    inserted.seen_at
from holdfast_schedules as s with (rowlock)
where s.name = :name
