-- Slots that were claimed and whose runs were refused.
update s
set
    state = 'skipped',
    run_id = null,
    because = r.because
from openjson(:rows) with (job nvarchar(1000), slot_at datetime2(6), because nvarchar(max)) as r
inner join holdfast_slots as s with (rowlock)
    on s.job = r.job collate latin1_general_100_bin2 and s.slot_at = r.slot_at
option (force order, loop join)
