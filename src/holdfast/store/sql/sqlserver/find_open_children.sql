-- Children of a run that have not ended and have not been asked to stop.
select top (:limit) r.id
from holdfast_runs as r
left join holdfast_outcomes as o on o.run_id = r.id
left join holdfast_leases as l on l.run_id = r.id
where
    r.parent_id = :parent_id
    and o.run_id is null
    and l.cancel_requested_at is null
order by r.id
