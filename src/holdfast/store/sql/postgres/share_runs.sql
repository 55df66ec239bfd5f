-- Which of these runs there are; none of them can be removed before this transaction ends.
select id
from holdfast_runs
where id = any (array(select json_array_elements_text(cast(:ids as json))))
order by id
for key share
