-- Describes each time an orchestrator removed an expired lease. The text begins with the time, so that the maximum of
-- several texts is the newest.
create view recoveries as
select
    e.id as number,
    e.run_id,
    substr(e.happened_at, 1, 19) || ' UTC: recovered from worker ' || (e.data ->> 'holder')
    || ' because ' || (e.data ->> 'reason')
    || case e.data ->> 'decision'
        when 'requeued' then '; READY again'
        when 'retried' then '; to be retried'
        else '; ended'
    end as description
from holdfast_event_view as e
where e.kind = 'RUN_TAKEN_OVER'
