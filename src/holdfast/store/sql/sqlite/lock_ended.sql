-- Hold these runs' submissions still: no one can begin to need one of them before this transaction ends.
select id
from holdfast_runs
where id in (select value from json_each(:ids))
