-- Who needs these runs, which have ended.
select top (:limit)
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_needs as n with (readpast, readcommittedlock) on n.needed = k.id collate latin1_general_100_bin2
inner join holdfast_outcomes as o on o.run_id = n.needed
order by
    n.needed,
    n.run_id
