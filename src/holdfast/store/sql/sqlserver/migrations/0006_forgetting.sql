-- A step that a job has forgotten: it was done, and is done again when its name is used next.
create table holdfast_forgotten (
    run_id varchar(26) collate latin1_general_100_bin2 not null,
    name nvarchar(400) collate latin1_general_100_bin2 not null,
    attempt int not null,
    tries int not null,
    started_at datetime2(6) not null,
    finished_at datetime2(6) not null,
    number int not null,
    primary key (run_id, attempt, number)
)
