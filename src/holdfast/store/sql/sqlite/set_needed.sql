-- Which runs these ones need, now that their builds are known.
update holdfast_runs
set needed = r.value ->> 'needed'
from json_each(:rows) as r
where holdfast_runs.id = r.value ->> 'id'
