-- What a run needs, and how it depends on each.
select
    needed,
    dependencies
from holdfast_runs
where id = :id
