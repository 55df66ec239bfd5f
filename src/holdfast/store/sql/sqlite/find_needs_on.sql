-- Who needs these runs, which have ended.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n
inner join holdfast_outcomes as o on o.run_id = n.needed
where n.needed in (select value from json_each(:ids))
order by
    n.needed,
    n.run_id
limit :limit
