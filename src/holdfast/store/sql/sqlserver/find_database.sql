-- Which database this is: its name, its server, and our tables as this connection finds them.
select
    db_name() as name,
    cast(serverproperty('servername') as nvarchar(128)) as server,
    object_id('holdfast_runs') as runs
