-- A step was done, and is remembered no more.
insert into holdfast_forgotten (run_id, name, attempt, tries, started_at, finished_at, number)
values (:run_id, :name, :attempt, :tries, :started_at, :finished_at, :number)
