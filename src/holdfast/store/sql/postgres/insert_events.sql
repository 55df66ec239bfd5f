-- Record what happened.
insert into holdfast_events (
    run_id,
    kind,
    attempt,
    data,
    happened_at
)
select
    run_id,
    kind,
    attempt,
    data,
    happened_at
from json_to_recordset(cast(:rows as json)) as r (run_id text, kind text, attempt integer, data text, happened_at timestamptz)
