-- How much belongs to these runs.
select
    (
        select count(*)
        from openjson(:ids) with (id varchar(100) '$') as k
        inner join holdfast_events as e on e.run_id = k.id collate latin1_general_100_bin2
    ) as events,
    count(*) as artifacts,
    coalesce(sum(a.size), 0) as bytes
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_artifacts as a on a.run_id = k.id collate latin1_general_100_bin2
