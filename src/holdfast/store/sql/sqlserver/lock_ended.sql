-- Hold these runs' submissions still, by writing them as they are: no one can begin to need one of them before this
-- transaction ends.
update r
set audit = r.audit
output inserted.id
from (
    select q.id
    from openjson(:ids) with (id varchar(100) '$') as k
    inner join holdfast_runs as q with (readpast, updlock, readcommittedlock)
        on q.id = k.id collate latin1_general_100_bin2
) as chosen
inner join holdfast_runs as r with (rowlock) on r.id = chosen.id
option (force order, loop join)
