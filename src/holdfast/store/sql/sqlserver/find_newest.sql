-- The newest run, after which new ones come; one that is not committed yet is passed by.
select top (1)
    id,
    created_at
from holdfast_runs with (readpast, readcommittedlock)
order by id desc
