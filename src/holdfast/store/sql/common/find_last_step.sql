-- The step that a run remembered last.
select result
from holdfast_steps
where run_id = :run_id
order by
    attempt desc,
    number desc
limit 1
