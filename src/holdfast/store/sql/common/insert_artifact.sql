-- An artifact was made.
insert into holdfast_artifacts (run_id, name, attempt, size, sha256, made_at)
values (:run_id, :name, :attempt, :size, :sha256, :made_at)
