-- An artifact was made.
insert into holdfast_artifacts (place, run_id, name, attempt, size, sha256, made_at)
values (:place, :run_id, :name, :attempt, :size, :sha256, :made_at)
