-- Runs whose time has come.
select
    run_id,
    key
from holdfast_waits
where due_at <= :now and missing = 0
order by due_at
limit :limit
