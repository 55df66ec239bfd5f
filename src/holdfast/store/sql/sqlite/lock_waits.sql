-- Hold these waits still until this transaction ends.
select run_id
from holdfast_waits
where run_id in (select value from json_each(:ids))
order by run_id
