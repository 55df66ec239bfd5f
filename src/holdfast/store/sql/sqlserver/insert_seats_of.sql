-- Seat runs that are there while their queue becomes bounded. Each is held still: one that ends meanwhile would leave
-- its seat behind.
insert into holdfast_seats (run_id, queue)
select
    p.run_id,
    p.queue
from (
    select l.run_id, l.queue
    from openjson(:ids) with (id varchar(100) '$') as n
    inner join holdfast_leases as l with (updlock, rowlock) on l.run_id = n.id collate latin1_general_100_bin2
    union all
    select w.run_id, w.queue
    from openjson(:ids) with (id varchar(100) '$') as n
    inner join holdfast_waits as w with (updlock, rowlock) on w.run_id = n.id collate latin1_general_100_bin2
    union all
    select y.run_id, y.queue
    from openjson(:ids) with (id varchar(100) '$') as n
    inner join holdfast_ready as y with (updlock, rowlock) on y.run_id = n.id collate latin1_general_100_bin2
) as p
where not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
