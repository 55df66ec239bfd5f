-- The runs that already have these idempotency keys.
select
    r.id,
    r.job,
    r.idempotency_key,
    r.args
from openjson(:rows) with (job nvarchar(1000), idempotency_key nvarchar(1000)) as k
inner join holdfast_runs as r
    on
        r.job = k.job collate latin1_general_100_bin2
        and r.idempotency_key = k.idempotency_key collate latin1_general_100_bin2
        and r.idempotency_key is not null
