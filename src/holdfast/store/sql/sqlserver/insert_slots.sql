-- Take slots; one that someone has is left out. Two who insert the same one at once meet at the primary key, and the
-- second tries again.
insert into holdfast_slots (
    job,
    slot_at,
    state,
    run_id,
    because,
    into_at,
    manual,
    claimed_at,
    claimed_by
)
output inserted.slot_at
select
    r.job,
    r.slot_at,
    r.state,
    r.run_id,
    r.because,
    r.into_at,
    r.manual,
    r.claimed_at,
    r.claimed_by
from openjson(:rows) with (
    job nvarchar(1000),
    slot_at datetime2(6),
    state nvarchar(1000),
    run_id varchar(100),
    because nvarchar(max),
    into_at datetime2(6),
    manual int,
    claimed_at datetime2(6),
    claimed_by nvarchar(1000)
) as r
where not exists (
    select 1
    from holdfast_slots as s
    where s.job = r.job collate latin1_general_100_bin2 and s.slot_at = r.slot_at
)
order by r.slot_at
