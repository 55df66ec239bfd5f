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
values (
    :id,
    :host,
    :pid,
    :version,
    :queues,
    :jobs,
    :concurrency,
    :exclusive,
    :started_at,
    :seen_at,
    :expires_at,
    :stopping
)
on conflict do nothing
