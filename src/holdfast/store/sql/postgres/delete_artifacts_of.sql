-- Some of what these runs have made is no longer kept.
with chosen as (
    select
        place,
        name
    from holdfast_artifacts
    where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
    order by place, name
    limit :limit
    for update
)

delete from holdfast_artifacts as a
using chosen as c
where a.place = c.place and a.name = c.name
returning a.run_id, a.place, a.name, a.attempt, a.size, a.sha256, a.made_at
