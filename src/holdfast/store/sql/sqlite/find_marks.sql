-- What of these runs changes when there is news of them.
select
    k.id,
    (
        select max(e.id)
        from holdfast_events as e
        where e.run_id = k.id
    ) as event,
    (
        select s.attempt || ' ' || s.number
        from holdfast_steps as s
        where s.run_id = k.id
        order by
            s.attempt desc,
            s.number desc
        limit 1
    ) as step,
    v.place,
    v.attempt
from (select value as id from json_each(:ids)) as k
inner join holdfast_run as v on v.id = k.id
