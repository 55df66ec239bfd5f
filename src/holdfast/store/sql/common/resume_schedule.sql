-- Slots of this schedule may start again.
update holdfast_schedules
set
    paused_at = null,
    note = null
where name = :name
