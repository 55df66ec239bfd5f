-- The runs that already have these idempotency keys.
select
    r.id,
    r.job,
    r.idempotency_key,
    r.args
from json_to_recordset(cast(:rows as json)) as k (job text, idempotency_key text)
inner join holdfast_runs as r on r.job = k.job and r.idempotency_key = k.idempotency_key
