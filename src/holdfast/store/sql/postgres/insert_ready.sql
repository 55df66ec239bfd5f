-- Let runs be claimed.
insert into holdfast_ready (
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
    reserved
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
    reserved
from json_to_recordset(cast(:rows as json)) as r (run_id text, job text, queue text, rank integer, key text, attempt integer, tries integer, takeovers integer, key_limit integer, number integer, reserved bigint)
