-- So many needs fewer.
update holdfast_waits as w
set
    missing = w.missing - r.count,
    look = 1
from json_to_recordset(cast(:rows as json)) as r (run_id text, count integer)
where w.run_id = r.run_id
returning w.run_id, w.key, w.missing, w.due_at
