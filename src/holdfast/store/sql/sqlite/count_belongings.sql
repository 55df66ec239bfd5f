-- How much belongs to these runs.
select
    (
        select count(*)
        from holdfast_events
        where run_id in (select value from json_each(:ids))
    ) as events,
    count(*) as artifacts,
    coalesce(sum(size), 0) as bytes
from holdfast_artifacts
where run_id in (select value from json_each(:ids))
