-- Seat new runs.
insert into holdfast_seats (run_id, queue)
select
    value ->> 'run_id',
    value ->> 'queue'
from json_each(:rows)
where true
on conflict do nothing
