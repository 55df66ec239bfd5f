-- Which runs these ones need, now that their builds are known.
update holdfast_runs as r
set needed = k.needed
from json_to_recordset(cast(:rows as json)) as k (id text, needed text)
where r.id = k.id
