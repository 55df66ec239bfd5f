-- Keys that runs wait for and no one holds.
insert into holdfast_holds (key, run_id)
select
    value,
    null
from json_each(:ids)
where true
on conflict do nothing
