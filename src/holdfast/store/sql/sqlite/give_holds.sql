-- It is these runs' turn.
update holdfast_holds
set run_id = r.value ->> 'run_id'
from json_each(:rows) as r
where
    holdfast_holds.key = r.value ->> 'key'
    and holdfast_holds.number = r.value ->> 'number'
    and holdfast_holds.run_id is null
