-- A page of runs that ended like this before then, the oldest first.
select
    o.run_id,
    o.finished_at,
    r.audit,
    r.parent_id
from holdfast_outcomes as o
inner join holdfast_runs as r on r.id = o.run_id
where
    o.state = :state
    and o.finished_at >= :since
    and o.finished_at < :before
    and (o.finished_at > :since or o.run_id > :after)
order by o.finished_at, o.run_id
limit :limit
