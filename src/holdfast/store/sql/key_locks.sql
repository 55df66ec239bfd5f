-- Key locks: which run has a key, and which waiting run gets it next. An open key lock has no run.

-- name: take_key_locks
-- Take free keys that only one run may hold. A key that a due run waits for is not free, because that run is older.
insert into holdfast_key_locks (run_key, key_number, run_id)
select
    r.run_key,
    1,
    r.run_id
from {rows: run_key name, run_id id} as r
where not exists (
    select 1
    from holdfast_waits as w
    where w.run_key = r.run_key and w.dependencies_left = 0 and (w.due_at is null or w.due_at <= :now)
)
{postgres: order by r.run_key collate "C"}
on conflict do nothing
returning run_id

-- name: take_key_locks (sqlserver)
-- Skips a waiting run that may not be committed yet, as in find_turns.
insert into holdfast_key_locks (run_key, key_number, run_id)
output inserted.run_id
select
    r.run_key,
    1,
    r.run_id
from (
    select
        s.run_key collate latin1_general_100_bin2 as run_key,
        s.run_id,
        row_number() over (
            partition by s.run_key collate latin1_general_100_bin2
            order by s.run_id collate latin1_general_100_bin2
        ) as turn
    from openjson(:rows) with (run_key nvarchar(1000), run_id varchar(100)) as s
) as r
where
    r.turn = 1
    and not exists (select 1 from holdfast_key_locks as h where h.run_key = r.run_key)
    and not exists (
        select 1
        from holdfast_waits as w with (readcommittedlock)
        where
            w.run_key = r.run_key
            and w.run_key is not null
            and w.dependencies_left = 0
            and w.unchecked = 0
            and (w.due_at is null or w.due_at <= :now)
    )
    and not exists (
        select 1
        from holdfast_waits as w with (readpast, readcommittedlock)
        where
            w.run_key = r.run_key
            and w.run_key is not null
            and w.dependencies_left = 0
            and w.unchecked = 1
            and (w.due_at is null or w.due_at <= :now)
    )
order by r.run_key

-- name: create_open_key_locks (sqlite)
-- Create open key locks for keys that more runs may hold: at most one for each run that waits for the key.
with recursive numbers (run_key, key_number, key_limit, wanted) as (
    select
        value ->> 'run_key',
        1,
        value ->> 'key_limit',
        value ->> 'wanted'
    from json_each(:rows)
    union all
    select
        run_key,
        key_number + 1,
        key_limit,
        wanted
    from numbers
    where key_number < key_limit
)

insert into holdfast_key_locks (run_key, key_number, run_id)
select
    f.run_key,
    f.key_number,
    null
from (
    select
        n.run_key,
        n.key_number,
        n.wanted,
        row_number() over (partition by n.run_key order by n.key_number) as turn
    from numbers as n
    where not exists (select 1 from holdfast_key_locks as h where h.run_key = n.run_key and h.key_number = n.key_number)
) as f
where f.turn <= f.wanted
on conflict do nothing

-- name: create_open_key_locks (postgres)
insert into holdfast_key_locks (run_key, key_number, run_id)
select
    r.run_key,
    f.key_number,
    null
from json_to_recordset(cast(:rows as json)) as r (run_key text, key_limit integer, wanted integer)
cross join lateral (
    select n.key_number
    from generate_series(1, r.key_limit) as n (key_number)
    where not exists (select 1 from holdfast_key_locks as h where h.run_key = r.run_key and h.key_number = n.key_number)
    order by n.key_number
    limit r.wanted
) as f
order by r.run_key, f.key_number
on conflict do nothing

-- name: create_open_key_locks (sqlserver)
insert into holdfast_key_locks (run_key, key_number, run_id)
select
    f.run_key,
    f.key_number,
    cast(null as varchar(26))
from (
    select
        r.run_key,
        n.key_number,
        r.wanted,
        row_number() over (partition by r.run_key order by n.key_number) as turn
    from (
        select
            s.run_key collate latin1_general_100_bin2 as run_key,
            max(s.key_limit) as key_limit,
            max(s.wanted) as wanted
        from openjson(:rows) with (run_key nvarchar(1000), key_limit int, wanted int) as s
        group by s.run_key collate latin1_general_100_bin2
    ) as r
    inner join (
        select top (1000) row_number() over (order by (select null)) as key_number
        from sys.all_objects
    ) as n on n.key_number <= r.key_limit
    where not exists (select 1 from holdfast_key_locks as h where h.run_key = r.run_key and h.key_number = n.key_number)
) as f
where f.turn <= f.wanted

-- name: open_key_locks
-- Open the key locks of these runs.
update holdfast_key_locks
set run_id = null
where run_id in {ids}

-- name: open_key_locks (sqlserver)
update h
set run_id = null
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_key_locks as h with (rowlock) on h.run_id = k.id collate latin1_general_100_bin2 and h.run_id is not null
{seek}

-- name: find_open_key_locks
-- Find open key locks.
select
    run_key,
    key_number
from holdfast_key_locks
where run_id is null
order by run_key, key_number
limit :limit
{postgres: for update skip locked}

-- name: find_open_key_locks (sqlserver)
-- The update changes nothing: it locks the rows until this transaction ends.
update h
set run_id = null
output
    inserted.run_key,
    inserted.key_number
from (
    select top (:limit)
        o.run_key,
        o.key_number
    from holdfast_key_locks as o with (readpast, updlock, readcommittedlock)
    where o.run_id is null
    order by o.run_key, o.key_number
) as chosen
inner join holdfast_key_locks as h with (rowlock) on h.run_key = chosen.run_key and h.key_number = chosen.key_number
where h.run_id is null
{seek}

-- name: find_turns (sqlite)
-- For each of these keys, find the oldest due runs that wait for it and have no key lock yet: one run for each of its
-- open key locks. A run counts as due at its time, even before an orchestrator marks it. The search goes from each run
-- to the next one, so it skips none.
with recursive found (run_key, key_number, opens, turn, run_id) as (
    select
        value ->> 'run_key',
        value ->> 'key_number',
        value ->> 'opens',
        0,
        ''
    from json_each(:rows)
    union all
    select
        f.run_key,
        f.key_number,
        f.opens,
        f.turn + 1,
        (
            select min(c.run_id)
            from (
                select *
                from (
                    select w.run_id
                    from holdfast_waits as w
                    where
                        w.run_key = f.run_key
                        and w.dependencies_left = 0
                        and w.due_at is null
                        and w.run_id > f.run_id
                        and w.key_limit >= f.key_number
                        and not exists (select 1 from holdfast_key_locks as h where h.run_id = w.run_id)
                    order by w.run_id
                    limit 1
                )
                union all
                select min(w.run_id) as run_id
                from holdfast_waits as w
                where
                    w.run_key = f.run_key
                    and w.dependencies_left = 0
                    and w.due_at <= :now
                    and w.run_id > f.run_id
                    and w.key_limit >= f.key_number
                    and not exists (select 1 from holdfast_key_locks as h where h.run_id = w.run_id)
            ) as c
        )
    from found as f
    where f.turn < f.opens and f.run_id is not null
)

select
    run_key,
    key_number,
    run_id
from found
where turn > 0 and run_id is not null
order by run_key, key_number, run_id

-- name: find_turns (postgres)
-- For each of these keys, find the oldest due runs that wait for it and have no key lock yet: one run for each of its
-- open key locks. A run counts as due at its time, even before an orchestrator marks it. The order includes due_at,
-- though it is null, so that it matches the index and only the first rows are read.
select
    k.run_key,
    k.key_number,
    c.run_id
from json_to_recordset(cast(:rows as json)) as k (run_key text, key_number integer, opens integer)
cross join lateral (
    select d.run_id
    from (
        (
            select w.run_id
            from holdfast_waits as w
            where
                w.run_key = k.run_key
                and w.dependencies_left = 0
                and w.due_at is null
                and w.key_limit >= k.key_number
                and (select h.key_number from holdfast_key_locks as h where h.run_id = w.run_id) is null
            order by w.due_at, w.run_id
            limit k.opens
        )
        union all
        (
            select w.run_id
            from holdfast_waits as w
            where
                w.run_key = k.run_key
                and w.dependencies_left = 0
                and w.due_at <= :now
                and w.key_limit >= k.key_number
                and (select h.key_number from holdfast_key_locks as h where h.run_id = w.run_id) is null
            order by w.run_id
            limit k.opens
        )
    ) as d
    order by d.run_id
    limit k.opens
) as c
order by k.run_key, k.key_number, c.run_id

-- name: find_turns (sqlserver)
-- For each of these keys, find the oldest due runs that wait for it and have no key lock yet: one run for each of its
-- open key locks. Skips locked unchecked runs, because they may belong to a caller transaction that is not committed
-- yet. Waits for any other locked run, so that no younger run starts first.
select
    k.run_key,
    k.key_number,
    c.run_id
from openjson(:rows) with (run_key nvarchar(1000), key_number int, opens int) as k
cross apply (
    select top (k.opens) d.run_id
    from (
        select x.run_id
        from (
            select top (k.opens) w.run_id
            from holdfast_waits as w with (readcommittedlock)
            where
                w.run_key = k.run_key collate latin1_general_100_bin2
                and w.run_key is not null
                and w.dependencies_left = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.unchecked = 0
                and w.key_limit >= k.key_number
                and not exists (select 1 from holdfast_key_locks as h where h.run_id = w.run_id)
            order by w.run_id
        ) as x
        union all
        select y.run_id
        from (
            select top (k.opens) w.run_id
            from holdfast_waits as w with (readpast, readcommittedlock)
            where
                w.run_key = k.run_key collate latin1_general_100_bin2
                and w.run_key is not null
                and w.dependencies_left = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.unchecked = 1
                and w.key_limit >= k.key_number
                and not exists (select 1 from holdfast_key_locks as h where h.run_id = w.run_id)
            order by w.run_id
        ) as y
    ) as d
    order by d.run_id
) as c
order by k.run_key, k.key_number, c.run_id

-- name: hand_over_key_locks
-- Give open key locks to these runs.
update holdfast_key_locks as h
set run_id = r.run_id
from {rows: run_key name, key_number int, run_id id} as r
where h.run_key = r.run_key and h.key_number = r.key_number and h.run_id is null

-- name: delete_open_key_locks (sqlite)
-- Delete open key locks that no run waits for.
delete from holdfast_key_locks
where
    (run_key, key_number) in (select value ->> 'run_key', value ->> 'key_number' from json_each(:rows))
    and run_id is null

-- name: delete_open_key_locks (postgres)
delete from holdfast_key_locks as h
using json_to_recordset(cast(:rows as json)) as r (run_key text, key_number integer)
where h.run_key = r.run_key and h.key_number = r.key_number and h.run_id is null

-- name: delete_open_key_locks (sqlserver)
-- A key lock is kept if a checked run waits for it, even a run that is being marked as checked right now: hence the
-- locking read. Unchecked runs do not count, because a caller transaction may not have committed them yet. Checking such
-- a run creates the key lock again.
delete h
from openjson(:rows) with (run_key nvarchar(1000), key_number int) as k
inner join holdfast_key_locks as h with (rowlock)
    on h.run_key = k.run_key collate latin1_general_100_bin2 and h.key_number = k.key_number
where
    h.run_id is null
    and not exists (
        select 1
        from holdfast_waits as w with (readcommittedlock)
        where
            w.run_key = h.run_key
            and w.run_key is not null
            and w.dependencies_left = 0
            and w.due_at is null
            and w.unchecked = 0
            and w.key_limit >= h.key_number
    )
{seek}

-- name: find_key_locks
-- Find the runs that have the locks of a key, including waiting runs that keep their lock.
select
    h.key_number,
    h.run_id,
    l.holder,
    l.started_at,
    l.expires_at,
    w.run_id as waits,
    w.due_at
from holdfast_key_locks as h
left join holdfast_leases as l on l.run_id = h.run_id
left join holdfast_waits as w on w.run_id = h.run_id
where h.run_key = :key
order by h.key_number

-- name: find_key_holders
-- Find which of these runs hold their key.
select
    run_id,
    key_number
from holdfast_key_locks
where run_id in {ids} and run_id is not null

-- name: count_waiting_before
-- Count the runs that wait for this key and come before this run.
select count(*) as ahead
from holdfast_waits as w
where w.run_key = :key and w.run_key is not null and w.dependencies_left = 0 and w.due_at is null and w.run_id < :run_id

-- name: list_keys
-- List keys with the number of runs that hold them and wait for them, and when the oldest waiting run was submitted.
with named as (
    select run_key from holdfast_key_locks where run_key > :after
    union
    select run_key from holdfast_waits where run_key is not null and dependencies_left = 0 and run_key > :after
),

page as (select run_key from named order by run_key limit :limit)

select
    p.run_key,
    (
        select max(each.key_limit)
        from (
            select w.key_limit from holdfast_waits as w where w.run_key = p.run_key and w.dependencies_left = 0
            union all
            select l.key_limit from holdfast_leases as l where l.run_key = p.run_key
            union all
            select max(h.key_number) as key_limit from holdfast_key_locks as h where h.run_key = p.run_key
        ) as each
    ) as key_limit,
    (
        select count(*)
        from holdfast_waits as w
        where
            w.run_key = p.run_key
            and w.dependencies_left = 0
            and not exists (select 1 from holdfast_key_locks as h where h.run_key = w.run_key and h.run_id = w.run_id)
    ) as waiting,
    (
        select min(r.created_at)
        from holdfast_runs as r
        where
            r.id = (
                select min(w.run_id)
                from holdfast_waits as w
                where
                    w.run_key = p.run_key
                    and w.dependencies_left = 0
                    and not exists (select 1 from holdfast_key_locks as h where h.run_key = w.run_key and h.run_id = w.run_id)
            )
    ) as oldest_at
from page as p
order by p.run_key
