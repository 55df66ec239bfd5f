-- Let runs wait.
insert into holdfast_waits (
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
    missing,
    due_at,
    because,
    look,
    since_at
)
select
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
    missing,
    due_at,
    because,
    look,
    since_at
from json_to_recordset(cast(:rows as json)) as r (run_id text, job text, queue text, rank integer, key text, attempt integer, tries integer, takeovers integer, missing integer, due_at timestamptz, because text, look integer, since_at timestamptz)
