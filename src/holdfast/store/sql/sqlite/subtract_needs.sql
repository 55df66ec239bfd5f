-- So many needs fewer, and so many of them ended badly; who needs nothing more is to be looked at.
update holdfast_waits
set
    missing = missing - (r.value ->> 'count'),
    spare = spare - (r.value ->> 'bad'),
    look = case when missing <= (r.value ->> 'count') then 1 else look end
from json_each(:rows) as r
where holdfast_waits.run_id = r.value ->> 'run_id'
returning run_id, key, missing, due_at, spare, errand
