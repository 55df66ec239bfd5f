-- What these waiting runs need and has ended.
select
    n.needed,
    n.run_id,
    n.must_succeed,
    o.state,
    o.failure_type
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_needs as n on n.run_id = k.id collate latin1_general_100_bin2
inner join holdfast_outcomes as o on o.run_id = n.needed
