-- Which of these runs exist.
select id
from holdfast_runs
where id in (select value from json_each(:ids))
