-- Rows of a rate that no one has used yet.
insert into holdfast_rates (name, number, turn)
select
    r.name,
    r.number,
    0
from openjson(:rows) with (name nvarchar(1000), number int) as r
where not exists (
    select 1
    from holdfast_rates as o
    where o.name = r.name collate latin1_general_100_bin2 and o.number = r.number
)
order by r.name, r.number
