-- Every schedule, and how far it has come.
select
    name,
    spec,
    considered_at,
    paused_at,
    note,
    seen_at
from holdfast_schedules
order by name
