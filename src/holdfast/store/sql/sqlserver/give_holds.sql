-- It is these runs' turn.
update h
set run_id = r.run_id
from openjson(:rows) with ([key] nvarchar(1000), number int, run_id varchar(100)) as r
inner join holdfast_holds as h with (rowlock)
    on h.[key] = r.[key] collate latin1_general_100_bin2 and h.number = r.number
where h.run_id is null
option (force order, loop join)
