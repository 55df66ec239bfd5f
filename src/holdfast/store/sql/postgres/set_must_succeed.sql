-- These needs must end well, though it was first said that they need not.
update holdfast_needs as n
set must_succeed = 1
from json_to_recordset(cast(:rows as json)) as r (needed text, run_id text)
where n.needed = r.needed and n.run_id = r.run_id and n.must_succeed = 0
