-- What has been counted of these spans of time.
select
    t.grain,
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_each(:rows) as r
cross join holdfast_tallies as t
    on
        t.grain = r.value ->> 'grain'
        and t.job = r.value ->> 'job'
        and t.queue = r.value ->> 'queue'
        and t.since_at = r.value ->> 'since_at'
        and t.state = r.value ->> 'state'
