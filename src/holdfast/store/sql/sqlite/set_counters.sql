-- Count so many more.
update holdfast_counters
set value = holdfast_counters.value + (r.value ->> 'count')
from json_each(:rows) as r
where holdfast_counters.name = r.value ->> 'name' and holdfast_counters.label = r.value ->> 'label'
