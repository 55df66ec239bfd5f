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
    job,
    slot_at,
    state,
    run_id,
    because,
    into_at,
    manual,
    claimed_at,
    claimed_by
from json_to_recordset(cast(:rows as json)) as r (
    job text,
    slot_at timestamptz,
    state text,
    run_id text,
    because text,
    into_at timestamptz,
    manual integer,
    claimed_at timestamptz,
    claimed_by text
)
on conflict do nothing
returning slot_at
