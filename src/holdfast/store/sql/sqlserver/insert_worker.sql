-- A worker starts; its exclusive name may be taken.
insert into holdfast_workers (
    id,
    host,
    pid,
    version,
    queues,
    jobs,
    concurrency,
    exclusive,
    started_at,
    seen_at,
    expires_at,
    stopping
)
select
    cast(:id as nvarchar(1000)),
    cast(:host as nvarchar(1000)),
    cast(:pid as int),
    cast(:version as nvarchar(1000)),
    cast(:queues as nvarchar(max)),
    cast(:jobs as nvarchar(max)),
    cast(:concurrency as int),
    cast(:exclusive as nvarchar(1000)),
    cast(:started_at as datetime2(6)),
    cast(:seen_at as datetime2(6)),
    cast(:expires_at as datetime2(6)),
    cast(:stopping as int)
where
    not exists (select 1 from holdfast_workers where id = :id)
    and not exists (select 1 from holdfast_workers where exclusive = :exclusive and exclusive is not null)
