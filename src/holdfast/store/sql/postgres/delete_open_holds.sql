-- Holds that no one wants any more.
delete from holdfast_holds as h
using json_to_recordset(cast(:rows as json)) as r (key text, number integer)
where h.key = r.key and h.number = r.number and h.run_id is null
