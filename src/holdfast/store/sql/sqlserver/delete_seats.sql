-- These runs have ended.
delete s
from openjson(:ids) with (id varchar(100) '$') as r
inner join holdfast_seats as s with (rowlock) on s.run_id = r.id collate latin1_general_100_bin2
option (force order, loop join)
