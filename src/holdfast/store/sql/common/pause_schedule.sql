-- No slot of this schedule may start.
update holdfast_schedules
set
    paused_at = coalesce(paused_at, :now),
    note = :note
where name = :name
