-- What has been counted of these jobs and queues.
select
    t.job,
    t.queue,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_each(:rows) as r
cross join holdfast_totals as t
    on
        t.job = r.value ->> 'job'
        and t.queue = r.value ->> 'queue'
        and t.state = r.value ->> 'state'
