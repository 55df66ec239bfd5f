-- Runs of a key that have not ended: those whose turn it is, and those that wait.
select
    a.run_id,
    s.slot_at,
    l.holder,
    l.expires_at,
    l.deadline_at
from (
    select run_id
    from holdfast_holds
    where key = :key and run_id is not null
    union
    select w.run_id
    from (
        select run_id
        from holdfast_waits
        where key = :key and key is not null and missing = 0
        order by key, due_at, run_id
        limit :limit
    ) as w
) as a
left join holdfast_slots as s on s.run_id = a.run_id and s.run_id is not null
left join holdfast_leases as l on l.run_id = a.run_id
order by a.run_id
limit :limit
