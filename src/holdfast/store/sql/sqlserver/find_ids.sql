-- The ids between two texts; one that a caller's open transaction submits is passed by.
select top (:limit) id
from holdfast_runs with (readpast, readcommittedlock)
where
    id > :after
    and id < :before
order by id
