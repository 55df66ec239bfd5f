-- How the run depends on each run in `needed`, so that one like it can wait as it did.
alter table holdfast_runs add column dependencies text
