-- What a run has made.
select
    run_id,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where run_id = :run_id
order by name
