-- Tokens ("passes"): API tokens and sessions.

-- name: insert_pass
-- A pass is given out; its name may be taken.
insert into holdfast_passes (
    digest,
    name,
    role,
    kind,
    made_at,
    expires_at
)
values (
    :digest,
    :name,
    :role,
    :kind,
    :now,
    :expires_at
)
on conflict do nothing

-- name: insert_pass (sqlserver)
insert into holdfast_passes (
    digest,
    name,
    role,
    kind,
    made_at,
    expires_at
)
select
    cast(:digest as varchar(128)),
    cast(:name as nvarchar(200)),
    cast(:role as nvarchar(200)),
    cast(:kind as nvarchar(200)),
    cast(:now as datetime2(6)),
    cast(:expires_at as datetime2(6))
where
    :kind <> 'token'
    or not exists (select 1 from holdfast_passes where name = :name and kind = 'token')

-- name: find_pass
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

-- name: list_passes
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

-- name: delete_pass
-- A pass is given back.
delete from holdfast_passes
where digest = :digest

-- name: delete_passes_of
-- Whoever has this name has no pass any more.
delete from holdfast_passes
where name = :name

-- name: delete_expired_passes
-- Passes that have run out.
delete from holdfast_passes
where expires_at <= :now
