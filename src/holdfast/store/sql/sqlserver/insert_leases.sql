-- Claim, second half: a run whose key, or whose place in its queue, someone
-- else has is left out.
insert into holdfast_leases (
    run_id,
    job,
    queue,
    rank,
    [key],
    attempt,
    tries,
    takeovers,
    key_limit,
    number,
    place,
    holder,
    started_at,
    expires_at,
    deadline_at
)
output inserted.run_id
select
    r.run_id,
    r.job,
    r.queue,
    r.rank,
    r.[key],
    r.attempt,
    r.tries,
    r.takeovers,
    r.key_limit,
    r.number,
    r.place,
    :holder,
    :now,
    r.expires_at,
    r.deadline_at
from (
    select
        s.run_id collate latin1_general_100_bin2 as run_id,
        s.job,
        s.queue,
        s.rank,
        s.[key] collate latin1_general_100_bin2 as [key],
        s.attempt,
        s.tries,
        s.takeovers,
        s.key_limit,
        s.number,
        s.place,
        s.expires_at,
        s.deadline_at,
        row_number() over (
            partition by
                s.[key] collate latin1_general_100_bin2,
                s.number,
                case when s.[key] is null then s.run_id end
            order by s.run_id collate latin1_general_100_bin2
        ) as turn
    from openjson(:rows) with (
        run_id varchar(100),
        job nvarchar(1000),
        queue nvarchar(1000),
        rank int,
        [key] nvarchar(1000),
        attempt int,
        tries int,
        takeovers int,
        key_limit int,
        number int,
        place int,
        expires_at datetime2(6),
        deadline_at datetime2(6)
    ) as s
) as r
where
    r.turn = 1
    and not exists (select 1 from holdfast_leases as l where l.run_id = r.run_id)
    and not exists (
        select 1
        from holdfast_leases as l
        where l.[key] = r.[key] and l.[key] is not null and l.number = r.number
    )
    and not exists (
        select 1
        from holdfast_leases as l
        where l.queue = r.queue collate latin1_general_100_bin2 and l.place = r.place and l.place is not null
    )
