-- These ended badly; those that have children are to take them along.
insert into holdfast_stops (
    parent_id,
    because,
    since_at
)
select
    r.parent_id,
    r.because,
    :now
from openjson(:rows) with (
    parent_id varchar(100),
    because nvarchar(max)
) as r
where
    exists (
        select 1
        from holdfast_runs as c
        where c.parent_id = r.parent_id collate latin1_general_100_bin2
    )
    and not exists (
        select 1
        from holdfast_stops as s
        where s.parent_id = r.parent_id collate latin1_general_100_bin2
    )
