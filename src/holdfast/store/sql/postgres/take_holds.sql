-- Take free keys that only one run may hold. A key that a due run waits for is not free: that run is older.
insert into holdfast_holds (key, number, run_id)
select
    r.key,
    1,
    r.run_id
from json_to_recordset(cast(:rows as json)) as r (key text, run_id text)
where not exists (
    select 1
    from holdfast_waits as w
    where w.key = r.key and w.missing = 0 and (w.due_at is null or w.due_at <= :now)
)
order by r.key
on conflict do nothing
returning run_id
