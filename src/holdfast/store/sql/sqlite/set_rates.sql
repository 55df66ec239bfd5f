-- What was started, and the turns that were given.
update holdfast_rates
set
    turn = r.value ->> 'turn',
    started_at = r.value ->> 'started_at'
from json_each(:rows) as r
where holdfast_rates.name = r.value ->> 'name' and holdfast_rates.number = r.value ->> 'number'
