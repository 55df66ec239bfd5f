-- What a run still needs.
select
    n.needed,
    v.job,
    v.state
from holdfast_needs as n
inner join holdfast_run as v on v.id = n.needed
where n.run_id = :run_id
order by n.needed
