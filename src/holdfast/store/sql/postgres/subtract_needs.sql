-- So many needs fewer, and so many of them ended badly.
update holdfast_waits as w
set
    missing = w.missing - r.count,
    spare = w.spare - r.bad,
    look = 1
from json_to_recordset(cast(:rows as json)) as r (run_id text, count integer, bad integer)
where w.run_id = r.run_id
returning w.run_id, w.key, w.missing, w.due_at, w.spare, w.errand
