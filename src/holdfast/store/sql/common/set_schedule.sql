-- Every slot up to then has been decided, by code that says what the schedule is.
update holdfast_schedules
set
    spec = :spec,
    considered_at = :considered_at,
    seen_at = :now
where name = :name
