-- What of these runs changes when there is news of them.
select
    k.id,
    (
        select max(e.id)
        from holdfast_events as e
        where e.run_id = k.id
    ) as event,
    (
        select top (1) concat(s.attempt, ' ', s.number)
        from holdfast_steps as s
        where s.run_id = k.id
        order by
            s.attempt desc,
            s.number desc
    ) as step,
    v.place,
    v.attempt
from (select i.id collate latin1_general_100_bin2 as id from openjson(:ids) with (id varchar(100) '$') as i) as k
inner join holdfast_run as v on v.id = k.id
