-- The step that a run remembered last.
select top (1) result
from holdfast_steps
where run_id = :run_id
order by
    attempt desc,
    number desc
