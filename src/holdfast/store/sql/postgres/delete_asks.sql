-- These asks have their build; each comes back to whoever removed it, and to no one else.
delete from holdfast_asks as a
using json_to_recordset(cast(:rows as json)) as r (run_id text, number integer)
where a.run_id = r.run_id and a.number = r.number
returning a.run_id, a.number
