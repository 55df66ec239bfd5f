-- It is these runs' turn.
update holdfast_holds as h
set run_id = r.run_id
from json_to_recordset(cast(:rows as json)) as r (key text, number integer, run_id text)
where h.key = r.key and h.number = r.number and h.run_id is null
