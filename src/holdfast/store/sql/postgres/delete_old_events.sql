-- The oldest events of no run in particular are no longer kept.
delete from holdfast_events
where
    id = any (array(
        select id
        from holdfast_events
        where run_id is null
        order by run_id, id
        limit :limit
    ))
    and happened_at < :before
