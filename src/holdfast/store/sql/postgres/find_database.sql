-- Which database this is: its name, its running server, and our tables as this connection finds them.
select
    current_database()::text as name,
    pg_postmaster_start_time() as started_at,
    to_regclass('holdfast_runs')::oid as runs
