-- Seat new runs.
insert into holdfast_seats (run_id, queue)
select
    r.run_id,
    r.queue
from openjson(:rows) with (run_id varchar(100), queue nvarchar(1000)) as r
where not exists (select 1 from holdfast_seats as s where s.run_id = r.run_id collate latin1_general_100_bin2)
