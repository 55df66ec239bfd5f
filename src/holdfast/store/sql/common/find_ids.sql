-- The ids between two texts.
select id
from holdfast_runs
where
    id > :after
    and id < :before
order by id
limit :limit
