-- Claim, second half: a run whose key, or whose place in its queue, someone else has is left out.
insert into holdfast_leases (
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
    key_limit,
    number,
    place,
    holder,
    started_at,
    expires_at,
    deadline_at
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
    key_limit,
    number,
    place,
    :holder,
    :now,
    expires_at,
    deadline_at
from json_to_recordset(cast(:rows as json)) as r (run_id text, job text, queue text, rank integer, key text, attempt integer, tries integer, takeovers integer, key_limit integer, number integer, place integer, expires_at timestamptz, deadline_at timestamptz)
order by run_id
on conflict do nothing
returning run_id
