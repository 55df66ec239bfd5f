-- Which runs these ones need, now that their builds are known.
update r
set needed = k.needed
from openjson(:rows) with (id varchar(100), needed nvarchar(max)) as k
inner join holdfast_runs as r with (rowlock) on r.id = k.id collate latin1_general_100_bin2
option (force order, loop join)
