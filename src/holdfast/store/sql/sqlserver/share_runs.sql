-- Which of these runs there are; none of them can be removed before this transaction ends.
select r.id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_runs as r with (repeatableread, rowlock) on r.id = k.id collate latin1_general_100_bin2
option (force order, loop join)
