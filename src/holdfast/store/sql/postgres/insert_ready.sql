-- Let runs be claimed.
insert into holdfast_ready (
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers
)
select
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers
from json_to_recordset(cast(:rows as json)) as r (run_id text, job text, queue text, rank integer, key text, attempt integer, tries integer, takeovers integer)
