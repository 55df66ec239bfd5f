-- Hold these waits still until this transaction ends.
select run_id
from holdfast_waits
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
order by run_id
for update
