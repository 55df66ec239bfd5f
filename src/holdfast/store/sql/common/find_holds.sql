-- Whose turn it is for a key; one that waits keeps it meanwhile.
select
    h.number,
    h.run_id,
    l.holder,
    l.started_at,
    l.expires_at,
    w.run_id as waits,
    w.due_at
from holdfast_holds as h
left join holdfast_leases as l on l.run_id = h.run_id
left join holdfast_waits as w on w.run_id = h.run_id
where h.key = :key
order by h.number
