-- Builds that an orchestrator has yet to get or create.
select
    a.run_id,
    a.number,
    a.job,
    a.scope,
    a.fingerprint,
    a.must_succeed,
    a.submission,
    r.created_at
from holdfast_asks as a
inner join holdfast_runs as r on r.id = a.run_id
order by
    a.run_id,
    a.number
limit :limit
