-- Some of what happened to these runs is no longer kept.
delete from holdfast_events
where id in (
    select id
    from holdfast_events
    where run_id in (select value from json_each(:ids))
    limit :limit
)
