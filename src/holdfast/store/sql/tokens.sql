-- Tokens: API tokens and sessions.

-- name: insert_token
-- Create a token, unless its name is taken.
insert into holdfast_tokens (
    digest,
    name,
    role,
    kind,
    created_at,
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

-- name: insert_token (sqlserver)
insert into holdfast_tokens (
    digest,
    name,
    role,
    kind,
    created_at,
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
    or not exists (select 1 from holdfast_tokens where name = :name and kind = 'token')

-- name: find_token
-- Find the token with this digest, if it has not expired.
select
    name,
    role,
    kind,
    created_at,
    expires_at
from holdfast_tokens
where
    digest = :digest
    and (expires_at is null or expires_at > :now)

-- name: list_tokens
-- List all valid tokens and sessions, grouped by name.
select
    name,
    role,
    kind,
    created_at,
    expires_at
from holdfast_tokens
where expires_at is null or expires_at > :now
order by
    name,
    kind desc,
    created_at
limit :limit

-- name: delete_token
-- Delete a token or session.
delete from holdfast_tokens
where digest = :digest

-- name: delete_tokens_of
-- Delete the token and all sessions of this name.
delete from holdfast_tokens
where name = :name

-- name: delete_expired_tokens
-- Delete expired tokens and sessions.
delete from holdfast_tokens
where expires_at <= :now
