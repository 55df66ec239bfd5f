-- Claim, second half: a run whose key someone else holds a lease on is left out.
insert into holdfast_leases (
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
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
    :holder,
    :now,
    expires_at,
    deadline_at
from json_to_recordset(cast(:rows as json)) as r (run_id text, job text, queue text, rank integer, key text, attempt integer, tries integer, takeovers integer, expires_at timestamptz, deadline_at timestamptz)
order by run_id
on conflict do nothing
returning run_id
