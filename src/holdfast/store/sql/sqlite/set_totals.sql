-- Go on counting jobs and queues.
update holdfast_totals
set
    runs = r.value ->> 'runs',
    waited = r.value ->> 'waited',
    ran = r.value ->> 'ran'
from json_each(:rows) as r
where
    holdfast_totals.job = r.value ->> 'job'
    and holdfast_totals.queue = r.value ->> 'queue'
    and holdfast_totals.state = r.value ->> 'state'
