-- Some of what happened to these runs is no longer kept.
delete from holdfast_events
where id = any (array(
    select id
    from holdfast_events
    where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
    limit :limit
))
