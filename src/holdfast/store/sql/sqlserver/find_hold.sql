-- Whose turn it is for a key, and how many wait before this run.
select
    h.run_id,
    l.holder,
    l.expires_at,
    (
        select count(*)
        from holdfast_waits as w
        where w.[key] = h.[key] and w.[key] is not null and w.missing = 0 and w.due_at is null and w.run_id < :run_id
    ) as ahead
from holdfast_holds as h
left join holdfast_leases as l on l.run_id = h.run_id
where h.[key] = :key
