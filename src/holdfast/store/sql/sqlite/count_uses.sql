-- How many runs needed each of these, among the newest that needed anything: so much is read, whatever there is.
select
    n.value as run_id,
    count(distinct r.id) as uses
from (
    select id, needed
    from holdfast_runs
    where needed is not null
    order by id desc
    limit :limit
) as r
inner join json_each(case when json_valid(r.needed) then r.needed else '[]' end) as n
where n.value in (select value from json_each(:ids))
group by n.value
