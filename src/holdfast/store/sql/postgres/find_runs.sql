-- Which of these runs exist.
select id
from holdfast_runs
where id = any (array(select json_array_elements_text(cast(:ids as json))))
