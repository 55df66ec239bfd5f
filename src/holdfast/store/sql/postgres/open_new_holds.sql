-- Keys that runs wait for and no one holds.
insert into holdfast_holds (key, run_id)
select
    key,
    null
from json_array_elements_text(cast(:ids as json)) as key
order by key
on conflict do nothing
