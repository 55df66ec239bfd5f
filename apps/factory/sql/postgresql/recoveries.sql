-- Describes each time an orchestrator removed an expired lease. The text begins with the time, so that the maximum of
-- several texts is the newest.
create view recoveries as
select
    e.id as number,
    e.run_id,
    to_char(e.happened_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC: recovered from worker ' || (cast(e.data as json) ->> 'holder')
    || ' because ' || (cast(e.data as json) ->> 'reason')
    || case cast(e.data as json) ->> 'decision'
        when 'requeued' then '; READY again'
        when 'retried' then '; to be retried'
        else '; ended'
    end as description
from holdfast_event_view as e
where e.kind = 'RUN_TAKEN_OVER'
