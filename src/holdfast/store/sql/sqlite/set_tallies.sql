-- Go on counting spans of time.
update holdfast_tallies
set
    runs = r.value ->> 'runs',
    waited = r.value ->> 'waited',
    ran = r.value ->> 'ran'
from json_each(:rows) as r
where
    holdfast_tallies.grain = r.value ->> 'grain'
    and holdfast_tallies.job = r.value ->> 'job'
    and holdfast_tallies.queue = r.value ->> 'queue'
    and holdfast_tallies.since_at = r.value ->> 'since_at'
    and holdfast_tallies.state = r.value ->> 'state'
