-- What was started, and the turns that were given.
update o
set
    turn = r.turn,
    started_at = r.started_at
from openjson(:rows) with (name nvarchar(1000), number int, turn bigint, started_at datetime2(6)) as r
inner join holdfast_rates as o with (rowlock)
    on
        o.name = r.name collate latin1_general_100_bin2
        and o.number = r.number
option (force order, loop join)
