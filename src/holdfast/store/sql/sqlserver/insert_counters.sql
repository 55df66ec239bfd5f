-- Counters that no one has used yet begin at nothing.
insert into holdfast_counters (name, label, value)
select
    r.name,
    r.label,
    0
from openjson(:rows) with (name nvarchar(1000), label nvarchar(1000)) as r
where not exists (
    select 1
    from holdfast_counters as o
    where o.name = r.name collate latin1_general_100_bin2 and o.label = r.label collate latin1_general_100_bin2
)
order by r.name, r.label
