-- Some of what these runs have made is no longer kept.
delete from holdfast_artifacts
where (place, name) in (
    select
        a.place,
        a.name
    from holdfast_artifacts as a
    where a.run_id in (select value from json_each(:ids))
    order by a.place, a.name
    limit :limit
)
returning run_id, place, name, attempt, size, sha256, made_at
