-- So many needs fewer, and so many of them ended badly; who needs nothing more is to be looked at.
update w
set
    missing = w.missing - r.[count],
    spare = w.spare - r.bad,
    look = case when w.missing <= r.[count] then 1 else w.look end
output
    inserted.run_id,
    inserted.[key],
    inserted.missing,
    inserted.due_at,
    inserted.spare,
    inserted.errand
from openjson(:rows) with (run_id varchar(100), [count] int, bad int) as r
inner join holdfast_waits as w with (rowlock) on w.run_id = r.run_id collate latin1_general_100_bin2
option (force order, loop join)
