-- A step that a job has forgotten: it was done, and is done again when its name is used next.
create table holdfast_forgotten (
    run_id text collate "C" not null,
    name text collate "C" not null,
    attempt integer not null,
    tries integer not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    number integer not null,
    primary key (run_id, attempt, number)
)
