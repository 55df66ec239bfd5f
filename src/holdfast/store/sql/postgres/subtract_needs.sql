-- So many needs fewer, and so many of them ended badly; who needs nothing more is to be looked at.
update holdfast_waits as w
set
    missing = w.missing - r.count,
    spare = w.spare - r.bad,
    look = case when w.missing <= r.count then 1 else w.look end
from json_to_recordset(cast(:rows as json)) as r (run_id text, count integer, bad integer)
where w.run_id = r.run_id
returning w.run_id, w.key, w.missing, w.due_at, w.spare, w.errand
