-- An artifact was made; of two that are made at once for one place the later counts.
insert into holdfast_artifacts (place, run_id, name, attempt, size, sha256, made_at)
values (:place, :run_id, :name, :attempt, :size, :sha256, :made_at)
on conflict (place, name) do update
set
    run_id = excluded.run_id,
    attempt = excluded.attempt,
    size = excluded.size,
    sha256 = excluded.sha256,
    made_at = excluded.made_at
