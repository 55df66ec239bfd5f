-- Slots that were claimed and whose runs were refused.
update holdfast_slots
set
    state = 'skipped',
    run_id = null,
    because = r.value ->> 'because'
from json_each(:rows) as r
where holdfast_slots.job = r.value ->> 'job' and holdfast_slots.slot_at = r.value ->> 'slot_at'
