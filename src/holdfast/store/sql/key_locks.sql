-- Key locks ("holds"): which run has a key, and which waiting run gets it next.

-- name: take_holds
-- Take free keys that only one run may hold. A key that a due run waits for is not free: that run is older.
insert into holdfast_holds (run_key, number, run_id)
select
    r.run_key,
    1,
    r.run_id
from {rows: run_key name, run_id id} as r
where not exists (
    select 1
    from holdfast_waits as w
    where w.run_key = r.run_key and w.missing = 0 and (w.due_at is null or w.due_at <= :now)
)
{postgres: order by r.run_key collate "C"}
on conflict do nothing
returning run_id

-- name: take_holds (sqlserver)
-- As in find_turns, a waiter that may not be committed yet is passed by.
insert into holdfast_holds (run_key, number, run_id)
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
    and not exists (select 1 from holdfast_holds as h where h.run_key = r.run_key)
    and not exists (
        select 1
        from holdfast_waits as w with (readcommittedlock)
        where
            w.run_key = r.run_key
            and w.run_key is not null
            and w.missing = 0
            and w.look = 0
            and (w.due_at is null or w.due_at <= :now)
    )
    and not exists (
        select 1
        from holdfast_waits as w with (readpast, readcommittedlock)
        where
            w.run_key = r.run_key
            and w.run_key is not null
            and w.missing = 0
            and w.look = 1
            and (w.due_at is null or w.due_at <= :now)
    )
order by r.run_key

-- name: open_new_holds (sqlite)
-- Keys that runs wait for and that more may hold: open as many as there are who want one.
with recursive numbers (run_key, number, key_limit, wanted) as (
    select
        value ->> 'run_key',
        1,
        value ->> 'key_limit',
        value ->> 'wanted'
    from json_each(:rows)
    union all
    select
        run_key,
        number + 1,
        key_limit,
        wanted
    from numbers
    where number < key_limit
)

insert into holdfast_holds (run_key, number, run_id)
select
    f.run_key,
    f.number,
    null
from (
    select
        n.run_key,
        n.number,
        n.wanted,
        row_number() over (partition by n.run_key order by n.number) as turn
    from numbers as n
    where not exists (select 1 from holdfast_holds as h where h.run_key = n.run_key and h.number = n.number)
) as f
where f.turn <= f.wanted
on conflict do nothing

-- name: open_new_holds (postgres)
insert into holdfast_holds (run_key, number, run_id)
select
    r.run_key,
    f.number,
    null
from json_to_recordset(cast(:rows as json)) as r (run_key text, key_limit integer, wanted integer)
cross join lateral (
    select n.number
    from generate_series(1, r.key_limit) as n (number)
    where not exists (select 1 from holdfast_holds as h where h.run_key = r.run_key and h.number = n.number)
    order by n.number
    limit r.wanted
) as f
order by r.run_key, f.number
on conflict do nothing

-- name: open_new_holds (sqlserver)
insert into holdfast_holds (run_key, number, run_id)
select
    f.run_key,
    f.number,
    cast(null as varchar(26))
from (
    select
        r.run_key,
        n.number,
        r.wanted,
        row_number() over (partition by r.run_key order by n.number) as turn
    from (
        select
            s.run_key collate latin1_general_100_bin2 as run_key,
            max(s.key_limit) as key_limit,
            max(s.wanted) as wanted
        from openjson(:rows) with (run_key nvarchar(1000), key_limit int, wanted int) as s
        group by s.run_key collate latin1_general_100_bin2
    ) as r
    inner join (
        select top (1000) row_number() over (order by (select null)) as number
        from sys.all_objects
    ) as n on n.number <= r.key_limit
    where not exists (select 1 from holdfast_holds as h where h.run_key = r.run_key and h.number = n.number)
) as f
where f.turn <= f.wanted

-- name: open_holds
-- These runs have had their turn.
update holdfast_holds
set run_id = null
where run_id in {ids}

-- name: open_holds (sqlserver)
update h
set run_id = null
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_holds as h with (rowlock) on h.run_id = k.id collate latin1_general_100_bin2 and h.run_id is not null
{seek}

-- name: find_open_holds
-- Holds between two turns.
select
    run_key,
    number
from holdfast_holds
where run_id is null
order by run_key, number
limit :limit
{postgres: for update skip locked}

-- name: find_open_holds (sqlserver)
-- The update changes nothing: it holds them still until this transaction ends.
update h
set run_id = null
output
    inserted.run_key,
    inserted.number
from (
    select top (:limit)
        o.run_key,
        o.number
    from holdfast_holds as o with (readpast, updlock, readcommittedlock)
    where o.run_id is null
    order by o.run_key, o.number
) as chosen
inner join holdfast_holds as h with (rowlock) on h.run_key = chosen.run_key and h.number = chosen.number
where h.run_id is null
{seek}

-- name: find_turns (sqlite)
-- For each of these open holds the oldest due waiters that may have it and have none yet (who keeps its key does), as
-- many as holds of its key are open; one whose time has just come is due, whoever has noticed it or not. Each is found
-- by the one before it: no waiter is passed over.
with recursive found (run_key, number, opens, turn, run_id) as (
    select
        value ->> 'run_key',
        value ->> 'number',
        value ->> 'opens',
        0,
        ''
    from json_each(:rows)
    union all
    select
        f.run_key,
        f.number,
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
                        and w.missing = 0
                        and w.due_at is null
                        and w.run_id > f.run_id
                        and w.key_limit >= f.number
                        and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
                    order by w.run_id
                    limit 1
                )
                union all
                select min(w.run_id) as run_id
                from holdfast_waits as w
                where
                    w.run_key = f.run_key
                    and w.missing = 0
                    and w.due_at <= :now
                    and w.run_id > f.run_id
                    and w.key_limit >= f.number
                    and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
            ) as c
        )
    from found as f
    where f.turn < f.opens and f.run_id is not null
)

select
    run_key,
    number,
    run_id
from found
where turn > 0 and run_id is not null
order by run_key, number, run_id

-- name: find_turns (postgres)
-- For each of these open holds the oldest due waiters that may have it and have none yet (who keeps its key does), as
-- many as holds of its key are open; one whose time has just come is due, whoever has noticed it or not. (By due_at
-- too, though it is null: so the index's order is the one asked for, and the first rows of it are all that is read.)
select
    k.run_key,
    k.number,
    c.run_id
from json_to_recordset(cast(:rows as json)) as k (run_key text, number integer, opens integer)
cross join lateral (
    select d.run_id
    from (
        (
            select w.run_id
            from holdfast_waits as w
            where
                w.run_key = k.run_key
                and w.missing = 0
                and w.due_at is null
                and w.key_limit >= k.number
                and (select h.number from holdfast_holds as h where h.run_id = w.run_id) is null
            order by w.due_at, w.run_id
            limit k.opens
        )
        union all
        (
            select w.run_id
            from holdfast_waits as w
            where
                w.run_key = k.run_key
                and w.missing = 0
                and w.due_at <= :now
                and w.key_limit >= k.number
                and (select h.number from holdfast_holds as h where h.run_id = w.run_id) is null
            order by w.run_id
            limit k.opens
        )
    ) as d
    order by d.run_id
    limit k.opens
) as c
order by k.run_key, k.number, c.run_id

-- name: find_turns (sqlserver)
-- For each of these open holds the oldest due waiters that may have it and have none yet (who keeps its key does), as
-- many as holds of its key are open. One to be looked at that is locked may not be committed yet (a caller's open
-- transaction put it there) and is passed by; any other is waited for, so that no younger one goes first.
select
    k.run_key,
    k.number,
    c.run_id
from openjson(:rows) with (run_key nvarchar(1000), number int, opens int) as k
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
                and w.missing = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.look = 0
                and w.key_limit >= k.number
                and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
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
                and w.missing = 0
                and (w.due_at is null or w.due_at <= :now)
                and w.look = 1
                and w.key_limit >= k.number
                and not exists (select 1 from holdfast_holds as h where h.run_id = w.run_id)
            order by w.run_id
        ) as y
    ) as d
    order by d.run_id
) as c
order by k.run_key, k.number, c.run_id

-- name: give_holds
-- It is these runs' turn.
update holdfast_holds as h
set run_id = r.run_id
from {rows: run_key name, number int, run_id id} as r
where h.run_key = r.run_key and h.number = r.number and h.run_id is null

-- name: delete_open_holds (sqlite)
-- Holds that no one wants any more.
delete from holdfast_holds
where
    (run_key, number) in (select value ->> 'run_key', value ->> 'number' from json_each(:rows))
    and run_id is null

-- name: delete_open_holds (postgres)
delete from holdfast_holds as h
using json_to_recordset(cast(:rows as json)) as r (run_key text, number integer)
where h.run_key = r.run_key and h.number = r.number and h.run_id is null

-- name: delete_open_holds (sqlserver)
-- A waiter that no one will look at again keeps its key's hold, even one whose look is being cleared this moment:
-- hence a locking read. One to be looked at is left out, as a caller's open transaction may have put it there:
-- looking opens the hold anew.
delete h
from openjson(:rows) with (run_key nvarchar(1000), number int) as k
inner join holdfast_holds as h with (rowlock)
    on h.run_key = k.run_key collate latin1_general_100_bin2 and h.number = k.number
where
    h.run_id is null
    and not exists (
        select 1
        from holdfast_waits as w with (readcommittedlock)
        where
            w.run_key = h.run_key
            and w.run_key is not null
            and w.missing = 0
            and w.due_at is null
            and w.look = 0
            and w.key_limit >= h.number
    )
{seek}

-- name: find_holds
-- Whose turn it is for a key; one that waits keeps it meanwhile.
select
    h.number,
    h.run_id,
    l.holder,
    l.started_at,
    l.expires_at,
    w.run_id as waits,
    w.due_at
from holdfast_holds as h
left join holdfast_leases as l on l.run_id = h.run_id
left join holdfast_waits as w on w.run_id = h.run_id
where h.run_key = :key
order by h.number

-- name: find_holders
-- Those of these runs that hold their key.
select
    run_id,
    number
from holdfast_holds
where run_id in {ids} and run_id is not null

-- name: count_waiting_before
-- How many wait for a key before this run.
select count(*) as ahead
from holdfast_waits as w
where w.run_key = :key and w.run_key is not null and w.missing = 0 and w.due_at is null and w.run_id < :run_id

-- name: list_keys
-- Keys that someone holds or waits for: how many hold and wait, and since when the oldest of these is there.
with named as (
    select run_key from holdfast_holds where run_key > :after
    union
    select run_key from holdfast_waits where run_key is not null and missing = 0 and run_key > :after
),

page as (select run_key from named order by run_key limit :limit)

select
    p.run_key,
    (
        select max(each.key_limit)
        from (
            select w.key_limit from holdfast_waits as w where w.run_key = p.run_key and w.missing = 0
            union all
            select l.key_limit from holdfast_leases as l where l.run_key = p.run_key
            union all
            select max(h.number) as key_limit from holdfast_holds as h where h.run_key = p.run_key
        ) as each
    ) as key_limit,
    (
        select count(*)
        from holdfast_waits as w
        where
            w.run_key = p.run_key
            and w.missing = 0
            and not exists (select 1 from holdfast_holds as h where h.run_key = w.run_key and h.run_id = w.run_id)
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
                    and w.missing = 0
                    and not exists (select 1 from holdfast_holds as h where h.run_key = w.run_key and h.run_id = w.run_id)
            )
    ) as oldest_at
from page as p
order by p.run_key
