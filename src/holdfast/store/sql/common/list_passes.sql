-- Every pass that is still good, those of one name together.
select
    name,
    role,
    kind,
    made_at,
    expires_at
from holdfast_passes
where expires_at is null or expires_at > :now
order by
    name,
    kind desc,
    made_at
limit :limit
