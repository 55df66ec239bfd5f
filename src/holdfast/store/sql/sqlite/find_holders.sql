-- Those of these runs that hold their key.
select
    run_id,
    number
from holdfast_holds
where run_id in (select value from json_each(:ids))
