-- Take over from runs that are no longer in the way, if they are still the ones that were seen.
update u
set run_id = r.run_id
output inserted.run_id
from openjson(:rows) with (job nvarchar(1000), digest varchar(200), run_id varchar(100), old_id varchar(100)) as r
inner join holdfast_uniques as u with (rowlock)
    on
        u.job = r.job collate latin1_general_100_bin2
        and u.digest = r.digest collate latin1_general_100_bin2
where u.run_id = r.old_id collate latin1_general_100_bin2
option (force order, loop join)
