-- How many runs needed each of these, among the newest that needed anything: so much is read, whatever there is.
select
    n.run_id,
    count(distinct r.id) as uses
from (
    select id, needed
    from holdfast_runs
    where needed is not null
    order by id desc
    limit :limit
) as r
cross join lateral json_array_elements_text(
    case json_typeof(holdfast_json(r.needed)) when 'array' then holdfast_json(r.needed) else cast('[]' as json) end
) as n (run_id)
where n.run_id = any (array(select json_array_elements_text(cast(:ids as json))))
group by n.run_id
