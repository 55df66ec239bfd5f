-- Slots that were claimed and whose runs were refused.
update holdfast_slots as s
set
    state = 'skipped',
    run_id = null,
    because = r.because
from json_to_recordset(cast(:rows as json)) as r (job text, slot_at timestamptz, because text)
where s.job = r.job and s.slot_at = r.slot_at
