-- Some of what these runs have made is no longer kept.
delete top (:limit) a
output
    deleted.run_id,
    deleted.place,
    deleted.name,
    deleted.attempt,
    deleted.size,
    deleted.sha256,
    deleted.made_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_artifacts as a with (rowlock) on a.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
