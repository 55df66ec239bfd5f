-- Hold these runs' submissions still: no one can begin to need one of them before this transaction ends.
select id
from holdfast_runs
where id = any (array(select json_array_elements_text(cast(:ids as json))))
order by id
for update skip locked
