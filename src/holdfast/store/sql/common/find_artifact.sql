-- One artifact.
select
    run_id,
    place,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where place = :place and name = :name
