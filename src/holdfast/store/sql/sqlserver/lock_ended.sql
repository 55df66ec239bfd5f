-- Hold these runs' submissions still, by writing them as they are: no one can begin to need one of them before this
-- transaction ends. Into a table first: an update that answers by itself can't have a trigger.
declare @held table (id varchar(26) collate latin1_general_100_bin2 not null primary key);
update r
set audit = r.audit
output inserted.id into @held
from (
    select q.id
    from openjson(:ids) with (id varchar(100) '$') as k
    inner join holdfast_runs as q with (readpast, updlock, readcommittedlock)
        on q.id = k.id collate latin1_general_100_bin2
) as chosen
inner join holdfast_runs as r with (rowlock) on r.id = chosen.id
option (force order, loop join);
select id
from @held
