-- So many needs fewer, and so many of them ended badly.
update holdfast_waits
set
    missing = missing - (r.value ->> 'count'),
    spare = spare - (r.value ->> 'bad'),
    look = 1
from json_each(:rows) as r
where holdfast_waits.run_id = r.value ->> 'run_id'
returning run_id, key, missing, due_at, spare, errand
