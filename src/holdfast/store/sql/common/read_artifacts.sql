-- A page of artifacts, to check their files.
select
    run_id,
    place,
    name,
    attempt,
    size,
    sha256,
    made_at
from holdfast_artifacts
where place >= :place and (place > :place or name > :name)
order by place, name
limit :limit
