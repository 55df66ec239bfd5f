-- The first of the runs that this one repeats, directly or through others; the run itself if it repeats none.
with recursive chain (id, again_of, depth) as (
    select
        id,
        again_of,
        0
    from holdfast_runs
    where id = :id
    union all
    select
        r.id,
        r.again_of,
        c.depth + 1
    from chain as c
    inner join holdfast_runs as r on r.id = c.again_of
)

select coalesce(again_of, id) as root
from chain
order by depth desc
limit 1
