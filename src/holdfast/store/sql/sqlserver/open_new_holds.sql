-- Keys that runs wait for and no one holds.
insert into holdfast_holds ([key], run_id)
select distinct
    k.[key] collate latin1_general_100_bin2,
    cast(null as varchar(26))
from openjson(:ids) with ([key] nvarchar(1000) '$') as k
where not exists (select 1 from holdfast_holds as h where h.[key] = k.[key] collate latin1_general_100_bin2)
