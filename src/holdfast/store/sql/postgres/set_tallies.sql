-- Go on counting spans of time.
update holdfast_tallies as t
set
    runs = r.runs,
    waited = r.waited,
    ran = r.ran
from json_to_recordset(cast(:rows as json)) as r (grain integer, job text, queue text, since_at timestamptz, state text, runs bigint, waited text, ran text)
where
    t.grain = r.grain
    and t.job = r.job
    and t.queue = r.queue
    and t.since_at = r.since_at
    and t.state = r.state
