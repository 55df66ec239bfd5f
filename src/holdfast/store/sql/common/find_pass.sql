-- The pass with this digest, if it is still good.
select
    name,
    role,
    kind,
    made_at,
    expires_at
from holdfast_passes
where
    digest = :digest
    and (expires_at is null or expires_at > :now)
