-- Keys that runs wait for and that more may hold: open as many as there are who want one.
insert into holdfast_holds (key, number, run_id)
select
    r.key,
    f.number,
    null
from json_to_recordset(cast(:rows as json)) as r (key text, key_limit integer, wanted integer)
cross join lateral (
    select n.number
    from generate_series(1, r.key_limit) as n (number)
    where not exists (select 1 from holdfast_holds as h where h.key = r.key and h.number = n.number)
    order by n.number
    limit r.wanted
) as f
order by r.key, f.number
on conflict do nothing
