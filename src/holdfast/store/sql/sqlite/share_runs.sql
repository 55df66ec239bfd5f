-- Which of these runs there are; none of them can be removed before this transaction ends.
select id
from holdfast_runs
where id in (select value from json_each(:ids))
