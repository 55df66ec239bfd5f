-- Seat new runs.
insert into holdfast_seats (run_id, queue)
select
    run_id,
    queue
from json_to_recordset(cast(:rows as json)) as r (run_id text, queue text)
order by run_id
on conflict do nothing
