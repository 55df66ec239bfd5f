-- A pass is given out; its name may be taken.
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
