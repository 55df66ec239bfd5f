-- Where what will be recorded from now on begins.
select
    cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint) as tx,
    0 as id
