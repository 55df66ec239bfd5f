-- How many runs needed each of these, among the newest that needed anything: so much is read, whatever there is.
select
    n.run_id,
    count(distinct r.id) as uses
from (
    select top (:limit) id, needed
    from holdfast_runs with (readpast, readcommittedlock)
    where needed is not null
    order by id desc
) as r
cross apply openjson(case isjson(r.needed) when 1 then r.needed else '[]' end) with (run_id varchar(100) '$') as n
inner join openjson(:ids) with (id varchar(100) '$') as k on n.run_id collate latin1_general_100_bin2 = k.id collate latin1_general_100_bin2
group by n.run_id
