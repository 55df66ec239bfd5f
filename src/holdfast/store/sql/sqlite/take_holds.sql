-- Take free keys that only one run may hold. A key that a due run waits for is not free: that run is older.
insert into holdfast_holds (key, number, run_id)
select
    value ->> 'key',
    1,
    value ->> 'run_id'
from json_each(:rows)
where not exists (
    select 1
    from holdfast_waits as w
    where w.key = value ->> 'key' and w.missing = 0 and (w.due_at is null or w.due_at <= :now)
)
on conflict do nothing
returning run_id
