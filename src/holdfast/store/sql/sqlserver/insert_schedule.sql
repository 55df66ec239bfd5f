-- A schedule is known from now on: no slot before this is due.
insert into holdfast_schedules (
    name,
    spec,
    considered_at,
    seen_at
)
select
    cast(:name as nvarchar(200)),
    cast(:spec as nvarchar(max)),
    cast(:now as datetime2(6)),
    cast(:now as datetime2(6))
where not exists (select 1 from holdfast_schedules where name = :name)
