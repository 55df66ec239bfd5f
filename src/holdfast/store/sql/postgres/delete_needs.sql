-- These needs are met; each comes back to whoever removed it, and to no one else.
delete from holdfast_needs as n
using json_to_recordset(cast(:rows as json)) as r (needed text, run_id text)
where n.needed = r.needed and n.run_id = r.run_id
returning n.needed, n.run_id
