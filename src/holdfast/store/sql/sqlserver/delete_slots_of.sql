-- The slots that these runs had are no longer kept.
delete t
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_slots as t with (rowlock) on t.run_id = k.id collate latin1_general_100_bin2
where t.run_id is not null
option (force order, loop join)
