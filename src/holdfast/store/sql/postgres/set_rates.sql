-- What was started, and the turns that were given.
update holdfast_rates as o
set
    turn = r.turn,
    started_at = r.started_at
from json_to_recordset(cast(:rows as json)) as r (name text, number integer, turn bigint, started_at timestamptz)
where o.name = r.name and o.number = r.number
