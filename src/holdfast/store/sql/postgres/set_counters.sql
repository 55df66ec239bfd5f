-- Count so many more.
update holdfast_counters as o
set value = o.value + r.count
from json_to_recordset(cast(:rows as json)) as r (name text, label text, count bigint)
where o.name = r.name and o.label = r.label
