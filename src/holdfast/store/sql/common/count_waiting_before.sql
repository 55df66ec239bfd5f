-- How many wait for a key before this run.
select count(*) as ahead
from holdfast_waits as w
where w.key = :key and w.missing = 0 and w.due_at is null and w.run_id < :run_id
