-- Whose turn it is for a key.
select
    h.number,
    h.run_id,
    l.holder,
    l.expires_at
from holdfast_holds as h
left join holdfast_leases as l on l.run_id = h.run_id
where h.key = :key
order by h.number
