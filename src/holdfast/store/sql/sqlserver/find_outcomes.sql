-- How these runs ended, those that did.
select
    o.run_id,
    o.state
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_outcomes as o on o.run_id = k.id collate latin1_general_100_bin2
