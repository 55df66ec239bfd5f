-- What an orchestrator wrote down each time it took a lease away that had run out. It begins with the time: the newest
-- of several texts is the last in order.
create view recoveries as
select
    e.id as number,
    e.run_id,
    to_char(e.happened_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC: taken from ' || (cast(e.data as json) ->> 'holder')
    || ', because ' || (cast(e.data as json) ->> 'because')
    || case cast(e.data as json) ->> 'decision'
        when 'requeued' then ', and made READY again'
        when 'retried' then ', to be tried again'
        else ', and ended'
    end as told
from holdfast_event as e
where e.kind = 'RUN_TAKEN_OVER'
