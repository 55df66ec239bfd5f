-- The runs of these segments of a stage, those that there are.
select
    r.id,
    r.segment
from openjson(:names) with (name nvarchar(1000) '$') as k
inner join holdfast_runs as r
    on
        r.parent_id = :parent_id
        and r.stage = :stage
        and r.segment = k.name collate latin1_general_100_bin2
