-- What was made in a range of places.
select
    run_id,
    place,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where place >= :first and place < :last
order by place, name
