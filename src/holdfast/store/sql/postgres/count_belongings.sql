-- How much belongs to these runs.
select
    (
        select count(*)
        from holdfast_events
        where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
    ) as events,
    count(*) as artifacts,
    cast(coalesce(sum(size), 0) as bigint) as bytes
from holdfast_artifacts
where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
