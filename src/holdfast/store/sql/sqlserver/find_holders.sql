-- Those of these runs that hold their key.
select
    h.run_id,
    h.number
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_holds as h on h.run_id = k.id collate latin1_general_100_bin2 and h.run_id is not null
