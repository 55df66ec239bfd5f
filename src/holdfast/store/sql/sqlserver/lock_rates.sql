-- The rows of these rates, held still: one claim at a time judges by them. Written as they are, they are held still
-- where a lock hint means nothing.
update r
set turn = r.turn
output inserted.name, inserted.number, inserted.turn, inserted.started_at
from openjson(:names) with (name nvarchar(1000) '$') as n
inner join holdfast_rates as r with (rowlock) on r.name = n.name collate latin1_general_100_bin2
option (force order, loop join)
