-- Remember finished steps.
insert into holdfast_steps (
    run_id,
    name,
    result,
    attempt,
    tries,
    started_at,
    finished_at,
    number
)
select
    run_id,
    name,
    result,
    attempt,
    tries,
    started_at,
    finished_at,
    number
from json_to_recordset(cast(:rows as json)) as r (run_id text, name text, result text, attempt integer, tries integer, started_at timestamptz, finished_at timestamptz, number integer)
