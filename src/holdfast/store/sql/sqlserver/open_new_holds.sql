-- Keys that runs wait for and that more may hold: open as many as there are who want one.
insert into holdfast_holds ([key], number, run_id)
select
    f.[key],
    f.number,
    cast(null as varchar(26))
from (
    select
        r.[key],
        n.number,
        r.wanted,
        row_number() over (partition by r.[key] order by n.number) as turn
    from (
        select
            s.[key] collate latin1_general_100_bin2 as [key],
            max(s.key_limit) as key_limit,
            max(s.wanted) as wanted
        from openjson(:rows) with ([key] nvarchar(1000), key_limit int, wanted int) as s
        group by s.[key] collate latin1_general_100_bin2
    ) as r
    inner join (
        select top (1000) row_number() over (order by (select null)) as number
        from sys.all_objects
    ) as n on n.number <= r.key_limit
    where not exists (select 1 from holdfast_holds as h where h.[key] = r.[key] and h.number = n.number)
) as f
where f.turn <= f.wanted
