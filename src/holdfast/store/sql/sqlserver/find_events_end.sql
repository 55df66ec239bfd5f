-- Where what will be recorded from now on begins.
select
    cast(min_active_rowversion() as bigint) - 1 as tx,
    0 as id
