-- Count so many more.
update o
set value = o.value + r.[count]
from openjson(:rows) with (name nvarchar(1000), label nvarchar(1000), [count] bigint) as r
inner join holdfast_counters as o with (rowlock)
    on
        o.name = r.name collate latin1_general_100_bin2
        and o.label = r.label collate latin1_general_100_bin2
option (force order, loop join)
