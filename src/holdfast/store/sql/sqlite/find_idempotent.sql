-- The runs that already have these idempotency keys.
select
    r.id,
    r.job,
    r.idempotency_key,
    r.args
from json_each(:rows) as k
inner join holdfast_runs as r on r.job = k.value ->> 'job' and r.idempotency_key = k.value ->> 'idempotency_key'
