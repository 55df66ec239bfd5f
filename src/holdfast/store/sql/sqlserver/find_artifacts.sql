-- What was made in a range of places, behind a name in the first of them.
select top (:limit)
    run_id,
    place,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where place >= :first and place < :last and (place > :first or name > :behind)
order by place, name
