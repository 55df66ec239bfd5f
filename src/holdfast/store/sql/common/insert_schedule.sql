-- A schedule is known from now on: no slot before this is due.
insert into holdfast_schedules (
    name,
    spec,
    considered_at,
    seen_at
)
values (
    :name,
    :spec,
    :now,
    :now
)
on conflict do nothing
