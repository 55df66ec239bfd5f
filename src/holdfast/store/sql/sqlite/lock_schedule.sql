-- A schedule; whoever writes has the database to itself.
select
    name,
    spec,
    considered_at,
    paused_at,
    note,
    seen_at
from holdfast_schedules
where name = :name
