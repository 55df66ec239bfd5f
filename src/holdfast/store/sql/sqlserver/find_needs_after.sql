-- A page of all needs, to find those whose ring was lost.
select top (:limit)
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from holdfast_needs as n with (readpast, readcommittedlock)
left join holdfast_outcomes as o on o.run_id = n.needed
where n.needed > :needed or (n.needed = :needed and n.run_id > :run_id)
order by
    n.needed,
    n.run_id
