-- Take slots; one that someone has is left out.
insert into holdfast_slots (
    job,
    slot_at,
    state,
    run_id,
    because,
    into_at,
    manual,
    claimed_at,
    claimed_by
)
select
    value ->> 'job',
    value ->> 'slot_at',
    value ->> 'state',
    value ->> 'run_id',
    value ->> 'because',
    value ->> 'into_at',
    value ->> 'manual',
    value ->> 'claimed_at',
    value ->> 'claimed_by'
from json_each(:rows)
where true
on conflict do nothing
returning slot_at
