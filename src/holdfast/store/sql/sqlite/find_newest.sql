-- The newest run, after which new ones come.
select
    id,
    created_at
from holdfast_runs
order by id desc
limit 1
