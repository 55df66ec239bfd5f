-- Schema: the version of the tables, which is also the lock of a migration; and the identity of a connection's database.

-- name: find_schema_table (sqlite)
select name from sqlite_master where type = 'table' and name = 'holdfast_schema'

-- name: find_schema_table (postgres)
select 1 as name where to_regclass('holdfast_schema') is not null

-- name: find_schema_table (sqlserver)
select 1 as name where object_id('holdfast_schema') is not null

-- name: create_schema_table
create table if not exists holdfast_schema (id integer not null primary key, version integer not null, touched integer not null)

-- name: create_schema_table (sqlserver)
create table holdfast_schema (id int not null primary key, version int not null, touched int not null)

-- name: insert_schema_row
insert into holdfast_schema (id, version, touched) values (1, 0, 0) on conflict do nothing

-- name: insert_schema_row (sqlserver)
insert into holdfast_schema (id, version, touched)
select 1, 0, 0
where not exists (select 1 from holdfast_schema where id = 1)

-- name: schema_version
select version from holdfast_schema where id = 1

-- name: lock_schema
update holdfast_schema set touched = touched + 1 where id = 1 returning version

-- name: lock_schema (sqlserver)
update holdfast_schema set touched = touched + 1 output inserted.version where id = 1

-- name: set_schema_version
update holdfast_schema set version = :version where id = 1

-- name: find_database (sqlite)
-- Find the database file, with the path resolved by SQLite; empty for a database in memory.
select list.file as name
from pragma_database_list as list
where list.name = 'main'

-- name: find_database (postgres)
-- Identify the database: its name, the start time of its server, and the table that this connection sees.
select
    current_database()::text as name,
    pg_postmaster_start_time() as started_at,
    to_regclass('holdfast_runs')::oid as runs

-- name: find_database (sqlserver)
-- Identify the database: its name, its server, and the table that this connection sees.
select
    db_name() as name,
    cast(serverproperty('servername') as nvarchar(128)) as server,
    object_id('holdfast_runs') as runs

-- name: find_isolation (sqlite)
-- Not needed here: a transaction with the write lock sees everything that was committed.
select null as isolation

-- name: find_isolation (postgres)
-- Find the isolation level of this transaction, if its statements do not see the later commits of others.
select
    case
        when current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            then current_setting('transaction_isolation')
    end as isolation

-- name: find_isolation (sqlserver)
-- Find the isolation level of this transaction, if its statements do not see the later commits of others.
select case when transaction_isolation_level = 5 then 'snapshot' end as isolation
from sys.dm_exec_sessions
where session_id = @@spid
